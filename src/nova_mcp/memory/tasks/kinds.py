"""Which kind of task a run is treated as: the strictest of what is said about it; pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.core.keywords import folded
from nova_mcp.memory.tasks.coverage.rules import policy_of
from nova_mcp.memory.tasks.model import KindPolicy, TaskKind

KindSource = Literal["declared", "profile", "wording", "default"]

_STRICTNESS: Final[Mapping[KindPolicy, int]] = {"min2": 0, "min3": 1, "all": 2}
# Words that speak of every page's text, each with the kind of task that it stands for.
_STEMS: Final[tuple[tuple[TaskKind, tuple[str, ...]], ...]] = (
    ("accessibility", ("accessib", "wcag", "barriere")),
    ("compliance", ("gdpr", "complian", "datenschutz", "dsgvo")),
    ("legal", ("legal", "impressum", "agb")),
    (
        "content_audit",
        (
            *("spell", "typo", "translat", "locali", "i18n", "content", "copy", "rechtschreib", "tippfehler"),
            *("übersetz", "exhaustive", "every page", "all pages", "alle seiten", "jede seite"),
        ),
    ),
)
# Shorter ones turn up inside unrelated words; German joins the longer ones to others.
_WITHIN_WORDS: Final = 6


def _pattern(stem: str) -> str:
    words = r"\s+".join(re.escape(part) for part in stem.split())
    return words if len(stem) >= _WITHIN_WORDS else rf"(?<!\w){words}"


_WORDING: Final = tuple((kind, re.compile("|".join(_pattern(stem) for stem in stems))) for kind, stems in _STEMS)


@dataclass(frozen=True, slots=True)
class KindVerdict:
    """The kind a run is treated as, who said so, and what that asks for."""

    effective: TaskKind | None
    source: KindSource
    policy: KindPolicy


def worded_kind(*texts: str) -> TaskKind | None:
    """The kind that a goal or a name speaks of."""
    said = folded(" ".join(texts))
    return next((kind for kind, pattern in _WORDING if pattern.search(said)), None)


def task_kind_policy(declared: TaskKind | None, profile: TaskKind | None, *texts: str) -> KindVerdict:
    """The strictest of what is given; a declared kind can tighten the policy and never loosens it."""
    given: list[tuple[TaskKind | None, KindSource]] = [
        (declared, "declared"),
        (profile, "profile"),
        (worded_kind(*texts), "wording"),
    ]
    named = [(kind, source) for kind, source in given if kind is not None]
    if not named:
        return KindVerdict(None, "default", "all")
    kind, source = max(named, key=lambda one: _STRICTNESS[policy_of(one[0])])
    return KindVerdict(kind, source, policy_of(kind))
