"""One entry of knowledge on a terminal or as JSON; what a page said is marked and bounded."""

from collections.abc import Iterator
from typing import Any

from nova_mcp.cli.terminal import moment, print_table, say, visible
from nova_mcp.core import keywords
from nova_mcp.memory.knowledge.model import Action, Context, DomainHint, ElementPrint, Phenomenon, Playbook, VerifyStep
from nova_mcp.memory.promotion.gates.explanations import number
from nova_mcp.memory.promotion.model import LearningEvent
from nova_mcp.memory.promotion.overview import KnownRevision, Life, Progress
from nova_mcp.tools.knowledge.result_parts import health_part, hint_part, phenomenon_part
from nova_mcp.tools.learning.promote import GatePart
from nova_mcp.tools.times import utc
from nova_mcp.verification.model import Omitted

SHOWN_CHARS = 120
LABEL_CHARS = 60
_LEVELS = ("candidate", "shadow", "active")


def cut(text: str, chars: int = SHOWN_CHARS) -> str:
    return keywords.cut(text, chars)


def standing(kept: Phenomenon | DomainHint) -> str:
    return "deprecated" if kept.deprecated else _LEVELS[kept.level]


def progress_text(one: Progress | None) -> str:
    """`2 of 3 proofs`; once there are enough of them, what else is missing."""
    if one is None:
        return "-"
    told = f"{one.have} of {one.need} {one.unit}"
    if one.have < one.need:
        return told
    return f"{told}, waits for {', '.join(one.waits_for)}" if one.waits_for else f"{told}, ready"


def progress_json(one: Progress | None) -> dict[str, Any] | None:
    if one is None:
        return None
    told = {"transition": one.transition, "have": one.have, "need": one.need, "unit": one.unit}
    return {**told, "waitsFor": list(one.waits_for)}


# -- for people


def say_entry(scope: str, found: Life, now_ms: int) -> None:
    _say_revision(scope, found.entry.current, now_ms)
    if (pending := found.entry.pending) is not None:
        say(f"\nIn review, to take its place: revision {pending.shelved.kept.revision}\n")
        _say_revision(scope, pending, now_ms)
    say("")
    if found.cut:
        say("(earlier decisions are not shown)")
    print_table(("when", "what happened", "on what evidence"), _life_rows(found))


def _say_revision(scope: str, one: KnownRevision, now_ms: int) -> None:
    print_table(("", visible(f"{scope} {one.shelved.stable_id}")), _facts(one, now_ms))
    kept = one.shelved.kept
    if isinstance(kept, DomainHint):
        say("")
        rows = [("reads", text) for text in kept.selectors] + [(f"takes {name}", text) for name, text in kept.extract]
        print_table(("use", "selector"), [(use, cut(text)) for use, text in rows])
        return
    say("")
    signals = kept.content.fingerprint.signals
    print_table(("known by", "match", "language"), [(s.kind, cut(s.match), s.locale or "any") for s in signals])
    if kept.content.playbook is not None:
        _say_playbook(kept.content.playbook)


def _facts(one: KnownRevision, now_ms: int) -> Iterator[tuple[str, object]]:
    shelved, kept = one.shelved, one.shelved.kept
    health = health_part(kept.health, now_ms)
    yield "type", kept.content.type if isinstance(kept, Phenomenon) else f"hint: {kept.kind}, {kept.mode}"
    yield "level", f"{standing(kept)}{', may guide' if kept.may_guide else ''}"
    if kept.deprecated_reason:
        yield "retired because", cut(kept.deprecated_reason)
    yield "progress", progress_text(one.progress)
    yield "revision", kept.revision
    yield "origin", shelved.origin
    yield "health", health.line()
    yield "in a row", f"{health.consecutive_failures} failures, {health.severe_misfires} severe misfires in all"
    yield "silent checks that failed", health.silent_verify_fails
    yield "staleness", f"{health.staleness:.0%}"
    for name, at_ms in (
        ("last success", kept.health.last_success_at_ms),
        ("last failure", kept.health.last_failure_at_ms),
        ("last drift", kept.health.last_drift_at_ms),
        ("last confirmed", kept.health.last_confirmed_at_ms),
    ):
        yield name, "never" if at_ms is None else moment(at_ms)
    if isinstance(kept, Phenomenon):
        yield "drift debt", f"{kept.drift_debt:.2f}"
        yield "holds", _context(kept.content.context)
        yield "least confidence", kept.content.fingerprint.min_confidence
        for selector in kept.unseen:
            yield "not seen on a page yet", cut(selector)
    yield "written", moment(kept.created_at_ms)
    yield "changed", moment(kept.updated_at_ms)


def _context(context: Context) -> str:
    told = [f"{name} {value}" for name, value in (("on", context.device), ("in", context.locale)) if value]
    told += [f"auth {context.auth}"] if context.auth else []
    told += [f"under {', '.join(context.routes)}"] if context.routes else []
    return cut(", ".join(told)) or "everywhere"


def _say_playbook(playbook: Playbook) -> None:
    say("")
    rows = [(place, *_action_row(one)) for place, one in enumerate(playbook.actions, 1)]
    heads = (f"playbook: {playbook.policy}", "action", "selector", "or", "input", "decides", "the page showed")
    print_table(heads, rows)
    if playbook.verify:
        say("")
        print_table(("then", "selector", "condition"), [_verify_row(one) for one in playbook.verify])


def _action_row(one: Action) -> tuple[str, ...]:
    value = f"{one.value_source} {one.value_name}".rstrip() if one.value_source else one.key
    value = f"{one.wait_ms} ms" if one.kind == "wait" else value
    fallbacks = ", ".join(cut(text) for text in one.fallbacks)
    return (
        one.kind,
        cut(one.selector or "-"),
        fallbacks or "-",
        value or "-",
        one.polarity or "-",
        _label(one.element),
    )


def _label(element: ElementPrint | None) -> str:
    """What the page said of a control, in quotation marks: it is data and says nothing to the reader."""
    if element is None:
        return "-"
    keywords = element.text or element.aria_label or element.name
    return f"<{cut(element.tag, 20)}> «{cut(keywords, LABEL_CHARS)}»" if keywords else f"<{cut(element.tag, 20)}>"


def _verify_row(one: VerifyStep) -> tuple[str, ...]:
    told = "" if one.threshold is None else f"at most {one.threshold:g}"
    if one.assertion is not None:
        expected = "" if isinstance(one.assertion.expected, Omitted) else f" {one.assertion.expected!r}"
        told = f"{one.assertion.fact_key} {one.assertion.operator}{expected}"
    return one.kind, cut(one.selector or "-"), cut(told) or "-"


def _life_rows(found: Life) -> Iterator[tuple[str, str, str]]:
    shelved = found.entry.current.shelved
    if not found.cut:
        yield moment(shelved.kept.created_at_ms), f"written ({shelved.origin})", ""
    for event in found.events:
        yield moment(event.created_at_ms), _happened(event), _evidence(event)


def _happened(event: LearningEvent) -> str:
    if event.rejection is not None:
        return f"{event.reason_kind} held back: {event.rejection}"
    if event.from_level == event.to_level:
        return event.reason_kind
    return f"{event.reason_kind}: {_LEVELS[event.from_level]} → {_LEVELS[event.to_level]}"


def _evidence(event: LearningEvent) -> str:
    return ", ".join(f"{gate.name} {number(gate.observed)}/{number(gate.required)}" for gate in event.gates)


# -- for programs


def entry_json(found: Life, now_ms: int) -> dict[str, Any]:
    entry = found.entry
    return {
        "entry": _revision_json(entry.current, now_ms),
        "pending": None if entry.pending is None else _revision_json(entry.pending, now_ms),
        "life": [_event_json(one) for one in found.events],
        "lifeCut": found.cut,
    }


def _revision_json(one: KnownRevision, now_ms: int) -> dict[str, Any]:
    kept = one.shelved.kept
    if isinstance(kept, Phenomenon):
        told = phenomenon_part(kept, now_ms, full=True).model_dump(mode="json", by_alias=True)
        told["driftDebt"] = kept.drift_debt
    else:
        told = hint_part(kept).model_dump(mode="json", by_alias=True)
        told["health"] = health_part(kept.health, now_ms).model_dump(mode="json", by_alias=True)
    return {
        **told,
        "origin": one.shelved.origin,
        "progress": progress_json(one.progress),
        "createdAtUtc": utc(kept.created_at_ms),
        "updatedAtUtc": utc(kept.updated_at_ms),
    }


def _event_json(event: LearningEvent) -> dict[str, Any]:
    return {
        "reasonKind": event.reason_kind,
        "fromLevel": event.from_level,
        "toLevel": event.to_level,
        "rejectionReason": event.rejection,
        "createdAtUtc": utc(event.created_at_ms),
        "gates": [GatePart.of(gate).model_dump(mode="json", by_alias=True) for gate in event.gates],
    }
