"""Deciding what a claim does to a fact, how fresh facts are, and when an agent should look again; pure."""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from nova_mcp.core.signal_vocabulary import ON_ROUTE
from nova_mcp.core.values import Json
from nova_mcp.memory.facts.model import (
    FRESH_MS,
    Added,
    Agreed,
    ClaimResult,
    Decision,
    Disputed,
    Fact,
    Full,
    Observation,
    OnlyObserved,
    Replaced,
    ServiceKind,
)

# An observation replaces a fact that it outweighs by this much.
CLEARLY_STRONGER: Final = 150
# What Nova saw itself is written down again only after this long while nothing changes.
SEEN_AGAIN_MS: Final = 60_000
MAX_VALUE_CHARS: Final = 16_384
_SAFE_INTEGER: Final = 2**53

RELEVANT: Final[dict[ServiceKind, tuple[str, ...]]] = {
    "chat": ("core.login_state", "core.model.active", "core.plan.tier"),
    "other": ("core.login_state", "core.page.type"),
}


def canonical(value: Json) -> str:
    """One text per JSON value, in plain ASCII: two values are the same if their texts are."""
    return json.dumps(_settled(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _settled(value: Json) -> Json:
    match value:
        case float() if math.isfinite(value) and value.is_integer() and abs(value) < _SAFE_INTEGER:
            return int(value)
        case list():
            return [_settled(item) for item in value]
        case dict():
            return {key: _settled(item) for key, item in value.items()}
        case _:
            return value


def value_chars(value: Json) -> int:
    """How long a value is as JSON; ValueError for what JSON can't say."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text in it ends in the middle of a character") from None
    return len(text)


def is_stale(fact: Fact, now_ms: int) -> bool:
    """Older than the window; a fact from the future was dated by a clock that has since been set back."""
    return abs(now_ms - fact.last_observed_at_ms) > FRESH_MS


def off_page(fact: Fact, url_hash: str) -> bool:
    """Whether a fact hangs on another address than the one the page has now."""
    return fact.key in ON_ROUTE and fact.url_hash != url_hash


# -- one claim


def decide(current: Fact | None, seen: Observation, *, room: bool = True) -> Decision:
    """What an observation does to the current fact of its key; `room` is whether one more custom fact fits."""
    if current is None:
        return Added(_first(seen)) if room else Full()
    if current.value == seen.value:
        return Agreed(_agreed(current, seen))
    if seen.certainty == "tentative" or _is_ours_against_theirs(current, seen):
        return OnlyObserved(current)
    if _outdoes(current, seen):
        fact = replace(_first(seen), version=current.version + 1)
        closed = replace(current, valid_to_ms=seen.observed_at_ms, superseded_by=fact.version)
        return Replaced(closed, fact)
    return Disputed(_disputed(current, seen))


def _is_ours_against_theirs(current: Fact, seen: Observation) -> bool:
    """A detector may be wrong on every look; what an agent stands for it confirms or warns about, nothing more."""
    return seen.source == "system" and current.source == "agent"


def _outdoes(current: Fact, seen: Observation) -> bool:
    return (
        is_stale(current, seen.observed_at_ms)
        or current.state == "conflicted"
        or off_page(current, seen.page.url_hash)
        or seen.confidence >= current.confidence + CLEARLY_STRONGER
        or (seen.source == "agent" and seen.certainty == "certain" and current.source == "system")
    )


def _first(seen: Observation) -> Fact:
    return Fact(
        key=seen.key,
        version=1,
        value=seen.value,
        state="fresh",
        confidence=seen.confidence,
        certainty=seen.certainty,
        source=seen.source,
        support=1,
        contradictions=0,
        corroborated=False,
        contradicting=0,
        call_id=seen.call_id,
        url=seen.page.url,
        url_hash=seen.page.url_hash,
        first_observed_at_ms=seen.observed_at_ms,
        last_observed_at_ms=seen.observed_at_ms,
        valid_from_ms=seen.observed_at_ms,
    )


def _agreed(current: Fact, seen: Observation) -> Fact:
    corroborated = current.corroborated or seen.call_id != current.call_id
    still_doubted = current.state == "conflicted" and seen.confidence < current.contradicting
    stronger = seen.confidence > current.confidence
    return replace(
        current,
        state="conflicted" if still_doubted else "confirmed" if corroborated else "fresh",
        confidence=max(current.confidence, seen.confidence),
        certainty=seen.certainty if stronger else current.certainty,
        # What an agent stands for is its own from then on.
        source="agent" if "agent" in (current.source, seen.source) else "system",
        support=current.support + 1,
        corroborated=corroborated,
        contradicting=current.contradicting if still_doubted else 0,
        url=seen.page.url,
        url_hash=seen.page.url_hash,
        last_observed_at_ms=seen.observed_at_ms,
    )


def _disputed(current: Fact, seen: Observation) -> Fact:
    return replace(
        current,
        state="conflicted",
        contradictions=current.contradictions + 1,
        contradicting=max(current.contradicting, seen.confidence),
    )


def result_of(seen: Observation, decision: Decision) -> ClaimResult:
    """What the answer says of one claim."""
    key = seen.key
    match decision:
        case Added(fact):
            return ClaimResult(key, fact.value, fact.state, is_new=True, superseded=False, stored=True)
        case Replaced(_, fact):
            return ClaimResult(key, fact.value, fact.state, is_new=False, superseded=True, stored=True)
        case Agreed(fact):
            warning = (
                f"{key} is still conflicted; observe again with more certainty." if fact.state == "conflicted" else None
            )
            return ClaimResult(
                key, fact.value, fact.state, is_new=False, superseded=False, stored=True, warning=warning
            )
        case Disputed(fact):
            warning = (
                f"{key} is conflicted: this claim contradicts the current fact and is not clearly stronger. Look again."
            )
            return ClaimResult(
                key, fact.value, fact.state, is_new=False, superseded=False, stored=True, warning=warning
            )
        case OnlyObserved():
            warning = f"{key}: a tentative claim can't replace the current fact; it was kept as an observation only."
            return ClaimResult(
                key, seen.value, "observation_only", is_new=False, superseded=False, stored=True, warning=warning
            )
        case Full():
            warning = f"{key} was not stored: this scope is full of custom facts. Keep to what the task needs."
            return ClaimResult(
                key, seen.value, "scope_full", is_new=False, superseded=False, stored=False, warning=warning
            )


# -- what Nova sees by itself

# Words its detectors use; a fact in other words can't be compared with them.
DETECTED: Final[dict[str, frozenset[str]]] = {
    "core.login_state": frozenset({"logged_in", "logged_out"}),
    "core.page.type": frozenset({"login", "chat"}),
    "core.ui.theme": frozenset({"light", "dark"}),
}


def worth_noting(current: Fact | None, seen: Observation) -> bool:
    """Whether something Nova saw does anything to the fact: comparable words, and not just said."""
    if current is None:
        return True
    if current.value != seen.value:
        return current.source == "system" and _comparable(seen.key, current.value, seen.value)
    told = current.state == "confirmed" or (current.state == "conflicted" and seen.confidence < current.contradicting)
    settled = told and current.url_hash == seen.page.url_hash
    return not settled or abs(seen.observed_at_ms - current.last_observed_at_ms) >= SEEN_AGAIN_MS


def doubted(facts: Mapping[str, Fact], sightings: Mapping[str, str], url_hash: str, now_ms: int) -> tuple[str, ...]:
    """Keys under which an agent's word still counts here, while the page looks otherwise to Nova."""
    return tuple(
        key
        for key, value in sorted(sightings.items())
        if (held := facts.get(key)) is not None
        and held.source == "agent"
        and held.value != value
        and fit(held, url_hash, now_ms) != "stale"
        and _comparable(key, held.value, value)
    )


def _comparable(key: str, held_text: str, seen_text: str) -> bool:
    held = json.loads(held_text)
    if not isinstance(held, str) or held_text == seen_text:
        return False
    if key == "core.ui.language":
        return held.isascii() and held.isalpha() and held.islower() and len(held) in (2, 3)
    return held in DETECTED.get(key, frozenset())


# -- hints


@dataclass(frozen=True, slots=True)
class Hint:
    """Why an agent should report what the page shows."""

    keys: tuple[str, ...]
    oldest_ago_ms: int | None
    first_visit: bool
    url_changed: bool


def hint(
    kind: ServiceKind, facts: Mapping[str, Fact], agent_url_hash: str | None, url_hash: str, now_ms: int
) -> Hint | None:
    """What perceive should ask for; None while everything relevant is known and fresh."""
    relevant = RELEVANT[kind]
    known = [facts[key] for key in relevant if key in facts]
    keys = tuple(key for key in relevant if key not in facts or _needs_look(facts[key], url_hash, now_ms))
    first = len(known) < len(relevant)
    moved = agent_url_hash is not None and agent_url_hash != url_hash
    if not (keys or first or moved):
        return None
    ages = [max(0, now_ms - fact.last_observed_at_ms) for fact in known]
    return Hint(keys, max(ages) if ages else None, first, moved)


def _needs_look(fact: Fact, url_hash: str, now_ms: int) -> bool:
    return fact.state == "conflicted" or is_stale(fact, now_ms) or off_page(fact, url_hash)


# -- what a fact may be used for


def usable(fact: Fact, url_hash: str, now_ms: int) -> bool:
    """Whether a fact may guide anything: fresh, undisputed, of this page, and more than a guess."""
    return fit(fact, url_hash, now_ms) == "fit"


def fit(fact: Fact, url_hash: str, now_ms: int) -> str:
    """`fit`, `stale` or `unsure`."""
    if is_stale(fact, now_ms) or off_page(fact, url_hash):
        return "stale"
    return "unsure" if fact.state == "conflicted" or fact.certainty == "tentative" else "fit"


def usable_facts(facts: Collection[Fact], url_hash: str, now_ms: int) -> dict[str, Json]:
    """The values that count, by key."""
    return {fact.key: json.loads(fact.value) for fact in facts if usable(fact, url_hash, now_ms)}
