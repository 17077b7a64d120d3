"""What a closed call leaves in the journal: one tool event, and observations where the page showed something; pure.

Nova's own refusals, calls that never reached the page and pages that an agent's script has changed teach nothing.
"""

import functools
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from nova_mcp.core.hosts import web_place
from nova_mcp.core.values import Json
from nova_mcp.evidence.model import CallRecord, Checked, CheckVerdict, LearningLabel, PageState
from nova_mcp.evidence.rules import effective_page, storable_text
from nova_mcp.memory.journal.candidates import candidate_key
from nova_mcp.memory.journal.evidence import Direction, EventVerdict, Observation, Severity, ToolEvent

ERROR_CHARS: Final = 220
SUMMARY_CHARS: Final = 400
PAYLOAD_BYTES: Final = 64 * 1024
FACT_CHARS: Final = 300
KEY_CHARS: Final = 400
MAX_SIGNALS: Final = 8
AMBIGUOUS: Final = "telemetry_ambiguous_selector"
_PREFIX: Final = "nova."
_AUTHORITY: Final = re.compile(r"https?://([^/\\?#]*)", re.IGNORECASE)
# Made once: json.dumps would make one per call.
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), sort_keys=True)
_TEACHING: Final = frozenset(
    {"click_selector", "type_selector", "type_selector_secret", "choose_option", "phenomenon_apply"}
)
_EXECUTED: Final = frozenset({"ok", "failed", "partial"})
_PAGE_EFFECTS: Final = frozenset({"read", "navigate", "act", "commit"})
_DRIFTS: Final[dict[CheckVerdict, Severity]] = {"light_drift": 1, "hard_drift": 2}
_DIRECTIONS: Final[dict[LearningLabel, Direction]] = {"success": 1, "failure": -1, "sighting": 0, "none": 0}


def bare_name(tool_name: str) -> str:
    return tool_name.removeprefix(_PREFIX)


def ended_at_ms(record: CallRecord) -> int:
    return record.started_at_ms + record.duration_ms


@functools.lru_cache(maxsize=1024)
def scope_of(url: str | None) -> str | None:
    """The host a page belongs to, with its port where that is not the usual one: spelled as knowledge spells it."""
    found = None if url is None else _AUTHORITY.match(url)
    place = None if found is None else web_place(found.group(1).rpartition("@")[2])
    return None if place is None else "".join(place)


def page_of(record: CallRecord) -> PageState:
    """Where it happened: input lands on the page that was there, a look or a navigation is about where it ended."""
    if record.effect in ("act", "commit") and record.before.url is not None:
        return record.before
    return effective_page(record)


def context_host(record: CallRecord) -> str | None:
    reported = record.signals.reported_at
    host = scope_of(page_of(record).url) if reported is None else reported[0]
    return None if host is None else storable_text(host)


def target_of(record: CallRecord) -> str | None:
    reported = record.signals.reported_at
    target = record.after.target_id or record.before.target_id if reported is None else reported[1]
    return None if target is None else storable_text(target)


# -- tool events


def tool_event_of(record: CallRecord) -> ToolEvent:
    outcome = record.outcome
    error = None if outcome.kind == "ok" else storable_text(outcome.reason_code or outcome.kind)[:ERROR_CHARS]
    return ToolEvent(
        event_id=record.call_id,
        principal=storable_text(record.caller.principal),
        owner_agent_id=storable_text(record.caller.agent_id),
        task_id=None if record.task_id is None else storable_text(record.task_id),
        target_id=target_of(record),
        tool_name=storable_text(record.tool_name),
        success=outcome.kind == "ok",
        duration_ms=record.duration_ms,
        error=error,
        context_host=context_host(record),
        arguments=_summary(record.arguments),
        created_at_ms=ended_at_ms(record),
        event_key=event_key_of(record),
        verdict=verdict_of(record),
    )


def _summary(arguments: Json) -> str:
    return _ENCODER.encode(arguments)[:SUMMARY_CHARS]


def payload_text(observation: Observation) -> str:
    text = _ENCODER.encode(dict(observation.payload))
    return text if len(text) <= PAYLOAD_BYTES else _ENCODER.encode({"omittedBytes": len(text)})


# -- what candidates look at


def is_evidence(record: CallRecord) -> bool:
    """Whether a call was carried out on a page that nobody had tampered with."""
    signals = record.signals
    return (
        record.kind == "call"
        and (record.effect in _PAGE_EFFECTS or signals.high_signal or signals.telemetry is not None)
        and record.outcome.kind in _EXECUTED
        and (not signals.refused or bool(record.outcome.action_dispatched))
        and not signals.scripted
        and target_of(record) is not None
        and context_host(record) is not None
    )


def digest(*parts: str) -> str:
    return hashlib.sha256(_ENCODER.encode(parts).encode("ascii")).hexdigest()


def event_key_of(record: CallRecord) -> str | None:
    """Host, tool and selector: what makes a later call speak about the same thing."""
    if not is_evidence(record):
        return None
    selector = storable_text(record.touched.selector or "")
    place = ("frame",) if record.signals.framed else ()
    return digest("event", context_host(record) or "", record.tool_name, selector, *place)[:32]


def diagnostic_key_of(record: CallRecord) -> str | None:
    """Host, tool and target: the next success of that tool there tells that its failure has passed."""
    if not is_evidence(record):
        return None
    return digest("diagnostic", context_host(record) or "", record.tool_name, target_of(record) or "")[:32]


def verdict_of(record: CallRecord) -> EventVerdict:
    """What a call says about a claim made from it; only what was proven one way or the other says anything.

    Looking at a page or going there proves nothing: an agent could repeat it until its own claim had evidence enough.
    """
    if not is_evidence(record):
        return "neutral"
    if record.effect in ("act", "commit"):
        return _act_verdict(record)
    signals = record.signals
    if signals.telemetry == "refuted":
        return "failure"
    proven = signals.high_signal or signals.telemetry == "confirmed"
    return "success" if proven and record.outcome.kind == "ok" else "neutral"


def _act_verdict(record: CallRecord) -> EventVerdict:
    if not record.outcome.action_dispatched:
        return "neutral"
    match record.signals.label:
        case "success" if record.outcome.kind == "ok" and record.outcome.verification == "verified":
            return "success"
        case "failure":
            return "failure"
        case "none" if record.signals.high_signal and record.outcome.kind == "ok":
            return "success"
        case _:
            return "neutral"


# -- observations


def cluster_key_of(seen: Observation, tool_name: str) -> str:
    """What an observation has in common with others, by which they are counted together."""
    return index_key(seen.candidate_key or seen.target_stable_id or seen.selector_norm or tool_name or "unknown")


def index_key(key: str) -> str:
    """No index takes a key of any length."""
    return key if len(key) <= KEY_CHARS else f"{key[: KEY_CHARS - 40]}…{digest(key)[:32]}"


def observations_of(record: CallRecord) -> tuple[Observation, ...]:
    """Everything a call showed about the page it was on; nothing where it showed nothing."""
    return tuple(_observed(record)) if is_evidence(record) else ()


def _observed(record: CallRecord) -> Iterator[Observation]:
    name, signals = bare_name(record.tool_name), record.signals
    if name == "perceive" and signals.structure is not None and record.outcome.kind == "ok":
        yield Observation(
            "perceive_signature", 0, fingerprint_hash=signals.structure, payload={"route": page_of(record).route_key}
        )
    if name == "dismiss_blockers" or (name == "phenomenon_apply" and signals.layers):
        # A playbook that closed a layer is one dismissal, and no second success beside it.
        yield from _dismissal(record)
    elif name in _TEACHING or name.startswith("guarded_"):
        yield from _action(record)
    if signals.drift is not None:
        yield _touching(record, Observation("selector_drift", -1, 2 if signals.drift == "hard" else 1))
    if signals.telemetry is not None:
        yield _telemetry(record)
    for check in signals.checks:
        yield _check(record, check)


def _check(record: CallRecord, check: Checked) -> Observation:
    """A look at one entry that touched nothing: it was there, or what it is acted through was not."""
    held = check.verdict == "seen"
    shown = Observation("perceive_signature", 0) if held else Observation("selector_drift", -1, _DRIFTS[check.verdict])
    return replace(
        shown,
        target_stable_id=check.stable_id,
        selector_norm=None if check.selector is None else storable_text(check.selector),
        payload={
            "route": page_of(record).route_key,
            "telemetry": "silent_verify_ok" if held else "silent_verify_drift",
        },
    )


def _action(record: CallRecord) -> Iterator[Observation]:
    if not record.outcome.action_dispatched or record.signals.label == "none":
        return
    match verdict_of(record):
        case "success" if record.signals.one_step:
            # Were it more than a sighting, it would stand in the way of what proves all the steps a moment later.
            yield _touching(record, Observation("action_success", 0))
        case "success":
            yield _touching(record, Observation("action_success", 1))
            if record.signals.target_stable_id is not None:
                yield _touching(record, Observation("tob_verified", 1))
        case "failure":
            yield _touching(record, Observation("action_failure", -1))
        case "neutral":
            yield _touching(record, Observation("action_success", 0))


def _dismissal(record: CallRecord) -> Iterator[Observation]:
    host, layers = context_host(record), record.signals.layers
    if not record.outcome.action_dispatched or record.signals.label == "none" or not layers or host is None:
        return
    outcome = _DIRECTIONS[record.signals.label]
    seen = _touching(record, Observation("blocker_dismissed", outcome))
    # Which control was pressed last says less about a layer than what kind of layer it is; an entry says more.
    key = None if seen.target_stable_id is not None else candidate_key(host, "blocker", layers[0])
    yield replace(seen, candidate_key=key, payload={**seen.payload, "layers": list(layers)})
    if outcome > 0 and seen.target_stable_id is not None and bare_name(record.tool_name) == "phenomenon_apply":
        yield _touching(record, Observation("tob_verified", 1))


def _telemetry(record: CallRecord) -> Observation:
    """A report that a call backs counts like that call; one that nothing backs is a claim and weighs nothing."""
    match record.signals.telemetry:
        case "confirmed":
            return _touching(record, Observation("telemetry_confirmed", 1))
        case "refuted":
            return _touching(record, Observation("selector_drift", -1, 2))
        case _:
            return _touching(record, Observation("telemetry_confirmed", 0))


def _shown(record: CallRecord) -> dict[str, Json]:
    """What generating candidates goes by; every piece is bounded."""
    signals = record.signals
    before, after = page_of(record).route_key, record.after.route_key
    told: dict[str, Json] = {
        "cameFrom": _cut(signals.came_from),
        "pageState": _cut(signals.page_state),
        "ledTo": None if after == before else _cut(after),
        "layer": signals.layer,
        "polarity": signals.polarity,
        "method": signals.method,
        "failedSelector": _cut(signals.failed_selector),
    }
    if signals.commits:
        told["commits"] = True
    if signals.seen_signals:
        told["signals"] = [[_cut(part) for part in one] for one in signals.seen_signals[:MAX_SIGNALS]]
    if signals.items is not None:
        told["items"] = [_cut(signals.items[0]), signals.items[1]]
    return told


def _cut(text: str | None) -> str | None:
    return None if text is None else storable_text(text)[:FACT_CHARS]


def _touching(record: CallRecord, seen: Observation) -> Observation:
    """The observation with what was touched, and with what is known about how it went; no text of the page."""
    touched, signals, outcome = record.touched, record.signals, record.outcome
    payload: dict[str, Json] = {
        "route": page_of(record).route_key,
        "verifyState": outcome.verification,
        "reasonCode": outcome.reason_code,
        "contract": signals.contract,
        "effectObserved": signals.effect_observed,
        **_shown(record),
        "attribution": AMBIGUOUS if signals.ambiguous_selector else None,
    }
    return Observation(
        seen.kind,
        seen.outcome,
        seen.severity,
        target_stable_id=signals.target_stable_id,
        fingerprint_hash=touched.fingerprint_id,
        # What stands in a frame is no control of the page, whatever else is called the same there.
        selector_norm=None if touched.selector is None or signals.framed else storable_text(touched.selector),
        source_scope=signals.source_scope,
        payload={name: value for name, value in payload.items() if value is not None},
    )
