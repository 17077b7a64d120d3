"""An entry that travels with a release: checked like any write before the release commits, stored by the job after."""

from collections.abc import Mapping

from pydantic import JsonValue
from sqlalchemy import Connection

from nova_mcp.errors import InvalidParams
from nova_mcp.memory.journal.outbox_store import Job
from nova_mcp.memory.journal.outbox_worker import Handler
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.memory.knowledge.writes.content_rules import LiveLook, check_content
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.knowledge.writes.rules import Refused, upserted, wished_content
from nova_mcp.memory.knowledge.writes.store import categorized
from nova_mcp.memory.promotion.learning import Learning
from nova_mcp.memory.promotion.prompts.prompter import written_of
from nova_mcp.tools.arguments import parse_arguments
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.params import id_problem
from nova_mcp.tools.knowledge.scope_argument import parsed_scope, require_open
from nova_mcp.tools.knowledge.upsert import UpsertParams
from nova_mcp.tools.knowledge.write_context import checked, raise_first, raise_for, refuse_secrets, stored_content

_ROOT = "finalizeOutboxPayload.data"


async def checked_payload(ctx: ToolContext, payload: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The payload of a job that stores an entry, once everything that would refuse the write has had its say.

    What the page showed goes with it: by the time the job runs, the page may be gone.
    """
    scope, p = _wanted(payload)
    tab = require_open(ctx, scope)
    wish = p.phenomenon.wish()
    refuse_secrets(ctx, p.phenomenon, _ROOT)
    raise_for(id_problem(wish.stable_id, "phenomenon.id"), _ROOT)
    known = (await ctx.learning.knowledge.known(scope)).shelved
    content = wished_content(await stored_content(ctx, scope, wish.stable_id), wish)
    raise_first(check_content(content), _ROOT)
    check = await checked(ctx, tab, scope, content)
    entries = len({one.stable_id for one in known} - {wish.stable_id})
    if isinstance(done := upserted(None, wish, check.live(content, None), entries=entries), Refused):
        raise_first(done.problems, _ROOT)
    found = () if check.distrusted else (one for one, look in check.looks.items() if look.matches)
    seen: list[JsonValue] = [*sorted(found)]
    return {**payload, "seen": seen}


def _wanted(payload: Mapping[str, JsonValue]) -> tuple[ScopeName, UpsertParams]:
    data = payload["data"]
    scope = parsed_scope(str(payload["scope"]))
    given = {"scope": payload["scope"], **data} if isinstance(data, dict) else {}
    p = parse_arguments(UpsertParams, given)
    if parsed_scope(p.scope) != scope:
        raise InvalidParams(
            "invalid_params",
            "finalizeOutboxPayload names two different sites",
            "Nothing was released. Let scope and data.scope be the same.",
            details={"argument": "finalizeOutboxPayload.scope"},
        )
    return scope, p


def saving(learning: Learning) -> Handler:
    """What does such a job; whatever the store refuses by then fails it with the reason."""

    def save_domain(conn: Connection, job: Job, now_ms: int) -> None:
        scope, p = _wanted(job.payload)
        told = job.payload.get("seen")
        looks = {one: LiveLook(1) for one in (told if isinstance(told, list) else ()) if isinstance(one, str)}
        done = learning.knowledge.writer.upsert(conn, scope, p.phenomenon.wish(), PageCheck(now_ms, looks=looks))
        if isinstance(done, Refused):
            raise ValueError(f"{done.problems[0].code}: {done.problems[0].message}")
        if p.service_categories is not None:
            categorized(conn, scope, p.service_categories, now_ms)
        answer = written_of(scope, done.written.content)
        learning.prompter.resolved_by(conn, job.principal, answer, now_ms)

    return save_domain
