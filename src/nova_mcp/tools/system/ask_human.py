"""Asking a person for what an agent can't or mustn't do itself."""

from collections.abc import Awaitable, Callable

import anyio
from pydantic import Field

from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.core.mailbox import Mailbox, this_process
from nova_mcp.core.questions import WHY_LIMIT, Question, QuestionKind, Reply
from nova_mcp.core.redaction import hide_claim_tokens
from nova_mcp.core.urls import normalize_url, page_host, redact_query
from nova_mcp.errors import Stage, Status, Unavailable
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import Result, TargetParams, maybe, tool

LOOK_S = 0.2
SIGN_OF_LIFE_S = 2.0


class AskParams(TargetParams):
    why: str = Field(min_length=1, max_length=WHY_LIMIT, description="what the person should do")
    kind: QuestionKind = "other"
    timeout_ms: int = Field(120_000, ge=1000, le=600_000)


class AskResult(Result):
    status: Status = "ok"
    stage: Stage | None = maybe()
    resolved: bool
    by: str
    note: str | None = maybe()

    def text(self) -> str:
        said = "is done" if self.resolved else "is not done: go another way or ask again with a clearer why"
        return f"{one_line(self.by, 64)} says it {said}" + (f" · {self.note!r}" if self.note else "")


@tool(
    title="Ask a person",
    effect="write",
    bundles=("core", "browser_automation"),
    gates=("claim.owner",),
    target="optional",
    lock="none",
    deadline_ms=lambda p: p.timeout_ms,
)
async def ask_human(ctx: ToolContext, p: AskParams) -> AskResult:
    """Asks a person to log in, solve a check or decide, and waits for their answer. Look at the page afterwards."""
    mailbox = Mailbox(ctx.settings.data_dir)
    if not ctx.settings.browser.headed and not mailbox.attended():
        raise _nobody(
            ctx,
            "Nobody can be asked: the browser has no window, and neither `nova watch` nor the dashboard is open.",
        )
    await _bring_to_front(ctx)
    question = _question(ctx, p)
    try:
        mailbox.post(question)
    except OSError as error:
        raise _nobody(ctx, f"The question can't be shown: {error.strerror or type(error).__name__}.") from None
    try:
        reply = await wait_for(mailbox, question.id, p.timeout_ms, lambda waited: _still_waiting(ctx, p, waited))
    finally:
        mailbox.withdraw(question.id)
    if reply is None:
        raise _nobody(ctx, f"Nobody answered within {p.timeout_ms} ms.")
    return _told(reply)


async def wait_for(
    mailbox: Mailbox, question_id: str, timeout_ms: int, still_waiting: Callable[[float], Awaitable[None]]
) -> Reply | None:
    """The person's answer, or None once the wait is over; nothing is held meanwhile."""
    began = anyio.current_time()
    next_sign = 0.0
    while (waited := anyio.current_time() - began) * 1000 < timeout_ms:
        if (reply := mailbox.reply_to(question_id)) is not None:
            return reply
        if waited >= next_sign:
            next_sign = waited + SIGN_OF_LIFE_S
            await still_waiting(waited)
        await anyio.sleep(min(LOOK_S, max(0.001, timeout_ms / 1000 - waited)))
    return mailbox.reply_to(question_id)


def _told(reply: Reply) -> AskResult:
    if reply.resolved:
        return AskResult(resolved=True, by=reply.by, note=reply.note)
    return AskResult(
        ok=False,
        status="partial",
        reason_code="human.not_done",
        stage="done",
        resolved=False,
        by=reply.by,
        note=reply.note,
    )


def _question(ctx: ToolContext, p: AskParams) -> Question:
    tab, now = ctx.evidence.tab, ctx.ports.clock.now_ms()
    url = normalize_url(tab.url) if tab is not None else None
    return Question(
        id=ctx.ports.ids.token(8),
        kind=p.kind,
        why=_shown(ctx, p.why, WHY_LIMIT),
        agent_id=ctx.caller.agent_id,
        target_id=tab.target_id if tab is not None else None,
        url=_shown(ctx, redact_query(url), 300) if url else None,
        asked_at_ms=now,
        expires_at_ms=now + p.timeout_ms,
        asker=this_process(),
    )


def _shown(ctx: ToolContext, text: str, limit: int) -> str:
    """As it may stand in a file and on a screen: questions are the only words of an agent that leave by this way."""
    return hide_claim_tokens(ctx.secrets.redactor.text(text))[:limit]


async def _bring_to_front(ctx: ToolContext) -> None:
    if ctx.evidence.tab is not None and ctx.settings.browser.headed:
        await ctx.evidence.tab.show()


async def _still_waiting(ctx: ToolContext, p: AskParams, waited_s: float) -> None:
    """A sign of life for the client; the tab stays the agent's while its person works in it."""
    tab = ctx.evidence.tab
    if tab is not None:
        ctx.claims.touched(tab, ctx.caller.owner, take=False)
    await ctx.call.progress(waited_s, p.timeout_ms / 1000, "waiting for a person")


def _nobody(ctx: ToolContext, message: str) -> Unavailable:
    tab = ctx.evidence.tab
    site = (page_host(tab.url) if tab is not None else None) or "<site>"
    return Unavailable(
        "human.unavailable",
        message,
        f"Tell your user: `nova login {site}` logs in by hand once, `nova watch` or the dashboard answers questions.",
        stage="observe",
        details={"resolved": False},
    )
