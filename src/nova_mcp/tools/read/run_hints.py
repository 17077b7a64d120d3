"""What a look says of the caller's open runs on the site it shows."""

from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from nova_mcp.core.tokens import fit_tokens, line_tokens
from nova_mcp.core.urls import normalize_url, page_host, url_hash
from nova_mcp.memory.tasks.runs.service import RunPage
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.read.hint import Look
from nova_mcp.tools.spec import Part, maybe
from nova_mcp.tools.tasks.run_parts import ActiveInstancePart, task_awareness

BLOCK: Final = "taskAwareness"
# A line shorter than this says nothing any more.
LEAST_LINE: Final = 30


class OpenRunsPart(Part):
    profile_match: dict[str, JsonValue] | None = maybe()
    active_instances: list[ActiveInstancePart]


@dataclass(slots=True)
class RunHint:
    """The caller's open runs that the tab's page belongs to by its host or as a unit; without a line it found no room
    in the text."""

    ctx: ToolContext
    host: str | None = None
    part: OpenRunsPart | None = None
    lines: str = ""
    reserved: int = 0

    async def read(self) -> None:
        ctx = self.ctx
        url, host = normalize_url(ctx.tab.url), page_host(ctx.tab.url)
        if url is None or host is None:
            return
        aware = task_awareness(await ctx.tasks.runs.awareness_on(ctx.caller, RunPage(host, url_hash(url))))
        if runs := aware.active_instances:
            self.host = host
            self.part = OpenRunsPart(profile_match=aware.profile_match, active_instances=runs)

    def take(self, room: int) -> int:
        if self.part is None or room <= LEAST_LINE:
            return 0
        first, *others = self.part.active_instances
        more = f" · {len(others)} more" if others else ""
        self.lines = fit_tokens(f"{first.line()}{more}", room - 1)
        return line_tokens(self.lines)

    async def settle(self, look: Look) -> None:
        if look.moved and page_host(self.ctx.tab.url) != self.host:
            self.part, self.lines = None, ""

    def fields(self) -> dict[str, object]:
        return {"task_awareness": self.part}

    @property
    def omitted(self) -> tuple[str, ...]:
        return (BLOCK,) if self.part is not None and not self.lines else ()
