"""Labels of controls: what pressing one would do, judged by everything it says; pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.core.page.consent_words import Said, said_by

BlockerKind = Literal[
    "consent", "modal", "login_wall", "paywall", "newsletter", "age_gate", "chat", "challenge", "unknown"
]
Label = Literal["accept", "reject", "close", "save", "manage", "unknown"]
Away = Literal["", "same", "other"]

# Reported, never attacked: a person has to decide.
HUMAN: Final[frozenset[BlockerKind]] = frozenset({"challenge", "login_wall", "paywall", "age_gate"})
_ACCEPTING: Final = re.compile(
    r"(^|[^a-z])(accept|agree|allow|optin|opt-in|consent-yes|akzeptieren|accepter|aceptar)", re.IGNORECASE
)
_LESS: Final = re.compile(r"necess|essent|requir|reject|deny|declin|refus|disagree|only|without", re.IGNORECASE)
_CLOSING: Final = re.compile(r"(^|[^a-z])(close|dismiss|schliessen|fermer|cerrar)([^a-z]|$)", re.IGNORECASE)
_CAMEL: Final = re.compile(r"([a-z])([A-Z])")


@dataclass(frozen=True, slots=True)
class ControlFacts:
    """What a control says, in every way it can, and where it would lead.

    `identifiers` are ids, classes and the like; `platform` is what is known of it from its consent platform.
    """

    texts: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    platform: Label | None = None
    away: Away = ""
    unfolds: bool = False
    small: bool = False


def _says_accept(identifiers: Sequence[str]) -> bool:
    return any(
        _ACCEPTING.search(_CAMEL.sub(r"\1-\2", one)) is not None and _LESS.search(one) is None for one in identifiers
    )


def _settled(said: Said, kind: BlockerKind) -> Label:
    """A refusal of an offer is a refusal of consent only where consent is asked for, and only a plain one."""
    if said == "decline":
        return "reject" if kind == "consent" else "close"
    if said == "excuse":
        return "unknown" if kind == "consent" else "close"
    return said


def label_for(facts: ControlFacts, kind: BlockerKind) -> Label:
    """What pressing a control would do. Whoever says two things at once is not understood; acceptance outweighs all."""
    said = [one for text in facts.texts if (one := said_by(text)) is not None]
    if facts.platform == "accept" or "accept" in said:
        return "accept"
    clear: set[Label] = {_settled(one, kind) for one in said} - {"unknown"}
    said_once: Label = next(iter(clear)) if len(clear) == 1 else "unknown"
    label: Label = facts.platform or said_once
    if facts.platform is not None and clear and facts.platform not in clear:
        label = "unknown"
    if label == "unknown" and not said and facts.small and any(_CLOSING.search(one) for one in facts.identifiers):
        label = "close"
    if label == "unknown":
        return label
    if facts.platform is None and _says_accept(facts.identifiers):
        return "accept"
    if facts.away == "other" or (facts.away == "same" and label != "reject"):
        return "unknown"
    return "unknown" if facts.unfolds and label != "manage" else label
