"""Made-up pages and redesigns of them, seeded: what every element was before is known by its number."""

import random
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nova_mcp.memory.knowledge.model import ElementPrint
from nova_mcp.memory.knowledge.repair.repair import PageElement

NOUNS = ("order", "invoice", "profile", "team", "report", "message", "project", "ticket", "asset", "contact", "plan")
VERBS = ("Edit", "Delete", "Open", "Share", "Archive", "Copy")
NAMES = ("Ada", "Bob", "Cyd", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "Jana")
FIELDS = (
    ("text", "first_name", "First name"),
    ("text", "last_name", "Last name"),
    ("email", "email", "Email address"),
    ("password", "password", "Password"),
    ("password", "password2", "Repeat password"),
    ("tel", "phone", "Phone"),
    ("search", "q", "Search"),
    ("text", "street", "Street"),
    ("text", "city", "City"),
    ("checkbox", "terms", "I agree to the terms"),
    ("checkbox", "remember", "Remember me"),
)
BUTTONS = ("Save", "Cancel", "Sign in", "Sign up", "Log out", "Continue", "Back", "Download", "Upload", "Reject all")
QUALIFIERS = ("Billing", "Shared", "Work", "Archived", "Public", "Second")
# Other words for the same thing, as redesigns like to bring.
SAYINGS = {
    "Sign in": ("Log in", "Login", "Sign In"),
    "Sign up": ("Register", "Create account"),
    "Log out": ("Sign out", "Logout"),
    "Email address": ("Email", "E-mail", "Your email address"),
    "First name": ("Given name", "Forename"),
    "Last name": ("Surname", "Family name"),
    "Phone": ("Phone number", "Telephone"),
    "Save": ("Save changes", "Update"),
    "Continue": ("Next", "Go on"),
    "Repeat password": ("Confirm password", "Password again"),
    "Remember me": ("Keep me signed in", "Remember password"),
    "Reject all": ("Decline all", "Only necessary"),
}


@dataclass(frozen=True)
class Strength:
    """How much a redesign changes: the chance of each attribute of each element, and of elements coming and going."""

    name: str
    words: float
    identifiers: float
    looks: float
    structure: float
    removed: float
    added: float


STRENGTHS = (
    Strength("light", 0.05, 0.15, 0.40, 0.20, 0.05, 0.10),
    Strength("medium", 0.15, 0.40, 0.80, 0.60, 0.10, 0.20),
    Strength("heavy", 0.30, 0.70, 1.00, 1.00, 0.20, 0.40),
)


def _generated(chance: random.Random) -> str:
    return "css-" + "".join(chance.choices(string.ascii_lowercase + string.digits, k=7))


def _place(chance: random.Random) -> tuple[float, float]:
    return round(chance.random(), 3), round(chance.random(), 3)


def _links(chance: random.Random) -> list[ElementPrint]:
    shape = "html/body/header/nav/ul/li/a"
    nouns = chance.sample(NOUNS, chance.randint(4, 8))
    return [
        ElementPrint(
            "a",
            text=noun.capitalize() + "s",
            href=f"/{noun}s",
            role="link",
            classes=("nav-link",),
            shape=shape,
            place=(index / 10, 0.05),
        )
        for index, noun in enumerate(nouns)
    ]


def _form(chance: random.Random) -> list[ElementPrint]:
    fields = chance.sample(FIELDS, chance.randint(3, 7))
    found: list[ElementPrint] = []
    for index, (kind, name, label) in enumerate(fields):
        found.append(
            ElementPrint(
                "input",
                kind,
                name,
                label,
                id=name.replace("_", "-") if chance.random() < 0.7 else "",
                role="checkbox" if kind == "checkbox" else "textbox",
                classes=("form-control",),
                neighbours=(label,),
                shape="html/body/main/form/div/input",
                place=(0.5, 0.2 + index / 20),
            )
        )
    return found


def _buttons(chance: random.Random) -> list[ElementPrint]:
    return [
        ElementPrint(
            "button",
            chance.choice(("submit", "button")),
            text=text,
            id=text.lower().replace(" ", "-") if chance.random() < 0.4 else "",
            testid=f"{text.lower().replace(' ', '-')}-button" if chance.random() < 0.2 else "",
            role="button",
            classes=("btn", chance.choice(("btn-primary", "btn-secondary"))),
            shape="html/body/main/form/div/button",
            place=_place(chance),
        )
        for text in chance.sample(BUTTONS, chance.randint(2, 5))
    ]


def _rows(chance: random.Random) -> list[ElementPrint]:
    noun, verbs = chance.choice(NOUNS), chance.sample(VERBS, 2)
    named = chance.random() < 0.5
    return [
        ElementPrint(
            "a" if named else "button",
            text=verb,
            href=f"/{noun}s/{number}/{verb.lower()}" if named else "",
            role="link" if named else "button",
            classes=("btn", "btn-sm"),
            neighbours=(name, noun),
            shape="html/body/main/table/tbody/tr/td/a",
            place=(0.9, 0.3 + number / 20),
        )
        for number, name in enumerate(chance.sample(NAMES, chance.randint(3, 6)))
        for verb in verbs
    ]


PARTS: Sequence[Callable[[random.Random], list[ElementPrint]]] = (_links, _form, _buttons, _rows)


def made_page(chance: random.Random) -> list[ElementPrint]:
    return [one for part in PARTS for one in part(chance)]


def _reworded(text: str, chance: random.Random) -> str:
    ways = [*SAYINGS.get(text, ()), text.title(), text.upper(), f"{text} now", f"{text} ›"]
    return chance.choice(ways)


def _renamed(name: str, chance: random.Random) -> str:
    return chance.choice((name.replace("-", "_"), f"{name}-field", f"new-{name}", "", _generated(chance)))


def redesigned(one: ElementPrint, how: Strength, chance: random.Random) -> ElementPrint:
    """One element after a redesign."""

    def happens(share: float) -> bool:
        return chance.random() < share

    if one.text and happens(how.words):
        one = replace(one, text=_reworded(one.text, chance))
    if one.id and happens(how.identifiers):
        one = replace(one, id=_renamed(one.id, chance))
    if one.name and happens(how.identifiers / 3):
        one = replace(one, name=f"user[{one.name}]")
    if one.testid and happens(how.identifiers / 3):
        one = replace(one, testid="")
    if one.href and happens(how.identifiers):
        one = replace(one, href=chance.choice(("/app", "/v2", "")) + one.href + chance.choice(("", ".html", "/")))
    if happens(how.looks):
        one = replace(one, classes=chance.choice((("button", "is-primary"), (_generated(chance),), (), ("MuiButton",))))
    if happens(how.structure):
        one = replace(one, shape="html/body/div/div/section/div/" + one.tag, place=_place(chance))
    if one.neighbours and happens(how.structure / 2):
        one = replace(one, neighbours=one.neighbours[:1])
    if one.tag == "button" and happens(how.structure / 4):
        one = replace(one, tag="a", type="", href="#", role="button")
    return one


def namesake(one: ElementPrint, chance: random.Random) -> ElementPrint:
    """Something else that sounds alike: the city of the invoice is not the city of the buyer."""
    word = chance.choice(QUALIFIERS)
    low = word.lower()
    return replace(
        one,
        text=chance.choice((f"{word} {one.text.lower()}", f"{one.text} ({low})")) if one.text else "",
        name=f"{low}_{one.name}" if one.name else "",
        id=f"{low}-{one.id}" if one.id else "",
        testid=f"{low}-{one.testid}" if one.testid else "",
        href=f"/{low}{one.href}" if one.href else "",
        neighbours=(word, *one.neighbours[1:]) if one.neighbours else (),
        place=_place(chance),
    )


@dataclass(frozen=True)
class Pair:
    """A page before and after; `truth` says which node an old element became, None when it is gone."""

    before: tuple[ElementPrint, ...]
    after: tuple[PageElement, ...]
    truth: tuple[int | None, ...]


def made_pair(how: Strength, chance: random.Random) -> Pair:
    before = made_page(chance)
    kept = [chance.random() >= how.removed for _ in before]
    survivors = [(index, redesigned(one, how, chance)) for index, one in enumerate(before) if kept[index]]
    newcomers = (namesake(one, chance) for one in before if chance.random() < how.added)
    strangers = [(-1, redesigned(one, how, chance)) for one in newcomers]
    whole = [*survivors, *strangers]
    chance.shuffle(whole)
    truth: list[int | None] = [None] * len(before)
    for node, (index, _) in enumerate(whole):
        if index >= 0:
            truth[index] = node
    # A page can always name an element by counting.
    after = (PageElement(node, one, f"main > :nth-child({node + 1})") for node, (_, one) in enumerate(whole))
    return Pair(tuple(before), tuple(after), tuple(truth))
