"""Answers in their two forms: typed JSON for machines, short text for models."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.calls.admission.gates import MOST_SHOWN, Notice
from nova_mcp.calls.endings import Done, Ending, Failed
from nova_mcp.calls.model import Answer
from nova_mcp.core.tokens import estimate_tokens
from nova_mcp.core.values import Json
from nova_mcp.errors import Fix
from nova_mcp.evidence.model import ACTING, Effect
from nova_mcp.settings import ToolNames
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.names import callable_fix
from nova_mcp.tools.spec import PageResult, compact

# Small enough that the shortest answers, sixty tokens, still have room for what was done and how sure it is.
NOTICE_TOKENS = 24
NOTICE_CHARS = 160


@dataclass(frozen=True, slots=True)
class Reader:
    """For whom an answer is written: which call, what it was meant to do, what the client sees listed."""

    call_id: str
    effect: Effect | None
    listed: Collection[str]
    touched: bool
    spelling: ToolNames = "dotted"


def render(ending: Ending, reader: Reader) -> Answer:
    match ending:
        case Done():
            return _result(ending, reader)
        case Failed():
            return _error(ending, reader)


def unrecorded(answer: Answer) -> Answer:
    """The page was touched but the ledger could not be written: the answer stands and says so."""
    body = answer.structured | {"actionDispatched": True, "evidenceRecorded": False}
    return replace(answer, structured=body, text=compact(body))


def not_recorded(answer: Answer, failure: StoreUnavailable) -> Answer:
    """A look at a page that the ledger does not know of: the answer stands and says so."""
    line = f"! not recorded: {one_line(failure.message, NOTICE_CHARS)}"
    return answer.with_block("evidenceRecorded", value=False).with_block("notRecorded", failure.message, line)


def render_fix(fix: Fix, reader: Reader) -> dict[str, Json]:
    return callable_fix(fix, reader.listed, reader.spelling)


def _notice_lines(notices: Sequence[Notice]) -> str:
    """One line for each gate; where several speak, the later ones are named only. The fix stands in the typed form."""
    lines = [f"! {notice.gate_id}" for notice in notices[:MOST_SHOWN]]
    for number, notice in enumerate(notices[:MOST_SHOWN]):
        said = f"! {notice.gate_id}: {one_line(notice.message, NOTICE_CHARS)}"
        longer = [*lines[:number], said, *lines[number + 1 :]]
        if estimate_tokens("\n".join(longer)) <= NOTICE_TOKENS:
            lines = longer
    return "\n".join(lines)


def tokens_of(notices: Sequence[Notice]) -> int:
    """What the gates will take of an answer's text, known before the tool writes the rest of it."""
    return estimate_tokens(f"\n{_notice_lines(notices)}") if notices else 0


def _gates(notices: tuple[Notice, ...], reader: Reader) -> list[Json]:
    blocks: list[Json] = []
    for notice in notices:
        said = f"{notice.message} {notice.hint}".rstrip()
        block: dict[str, Json] = {"gateId": notice.gate_id, "status": notice.status, "message": said}
        if notice.fix is not None:
            block["fix"] = render_fix(notice.fix, reader)
        blocks.append(block)
    return blocks


def with_notices(answer: Answer, notices: tuple[Notice, ...], reader: Reader) -> Answer:
    """A failed call carries what its caller has to hear as well."""
    return answer.with_block("gates", _gates(notices, reader)) if notices else answer


def _result(done: Done, reader: Reader) -> Answer:
    result, notices = done.result, done.notices
    structured, text = result.structured(), result.text()
    if isinstance(result, PageResult) and not text.startswith("{"):
        text = "\n".join([text, *(download.line() for download in result.downloads)])
    if notices:
        structured["gates"] = _gates(notices[:MOST_SHOWN], reader)
        text += f"\n{_notice_lines(notices)}"
    failed = result.status in ("failed", "blocked", "not_found")
    return Answer(structured=structured, text=text, is_error=failed, images=result.images())


def _error(failed: Failed, reader: Reader) -> Answer:
    """The same body in both forms; acting tools always say whether the page was touched."""
    error = failed.error
    body = error.body(dispatched=reader.touched) | {"callId": reader.call_id}
    if failed.gate_id is not None:
        body["gateId"] = failed.gate_id
    if error.fix is not None:
        body["fix"] = render_fix(error.fix, reader)
    if reader.effect in ACTING or reader.touched:
        body |= {"actionDispatched": reader.touched, "effect": None, "verifyState": "failed"}
    body |= {key: value for key, value in error.details.items() if key not in body}
    return Answer(structured=body, text=compact(body), is_error=True)
