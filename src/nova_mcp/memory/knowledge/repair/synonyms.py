"""What a label means: the usual other words for the same thing, without the words that only dress it up; pure."""

import functools
from typing import Final

Words = tuple[str, ...]

# Words that come and go in redesigns and never tell one field or button of a page from another.
_DRESSING: Final = """
a an the your my our i please enter type insert here now for of free full address
ihre deine bitte jetzt eingeben adresse votre vos saisir entrez veuillez maintenant su tu por favor ahora
"""
_FILLERS: Final = frozenset(_DRESSING.split())
# How a picture is drawn, by the usual names of icon sets and of what lays them out.
_STYLE: Final = """
fa fas far fab fal fad bi mdi ti la las lab lar ni ui now icon icons icns ico glyphicon glyphicons material symbol
svg img image picture pic fluid responsive inline lg sm xs md xl fw x 0 0x square circle alt outline outlined solid
regular brands symbols f in g v o color white dark light text me ms mr ml mx my mt mb pe ps pr pl px py
"""
DRAWING: Final = frozenset(_STYLE.split())
_SAID: Final = {
    "log in": ("login", "log in", "sign in", "signin", "anmelden", "einloggen", "se connecter", "iniciar sesión"),
    "log out": ("logout", "log out", "log off", "sign out", "signout", "abmelden", "ausloggen", "se déconnecter"),
    "sign up": ("sign up", "signup", "register", "create account", "create an account", "create new account",
                "create a new account", "create your account", "registrieren", "konto erstellen", "créer un compte"),
    "email": ("email", "e mail"),
    "forgotten": ("forgot password", "forgot your password", "forgot my password", "lost password",
                  "lost your password", "passwort vergessen", "mot de passe oublié"),
    "password again": ("repeat password", "retype password", "confirm password", "re enter password",
                       "password again", "password confirmation", "passwort wiederholen", "passwort bestätigen"),
}  # fmt: skip
_PHRASES: Final = {tuple(phrase.split()): f"={kind}" for kind, phrases in _SAID.items() for phrase in phrases}
_LONGEST: Final = max(map(len, _PHRASES))


@functools.lru_cache(maxsize=16_384)
def meaning(words: Words) -> Words:
    """The words that carry a label; a label of fillers alone means what it says."""
    found: list[str] = []
    at = 0
    while at < len(words):
        for size in range(min(_LONGEST, len(words) - at), 0, -1):
            if (said := _PHRASES.get(words[at : at + size])) is not None:
                found.append(said)
                at += size
                break
        else:
            found.append(words[at])
            at += 1
    return tuple(word for word in found if word not in _FILLERS) or words
