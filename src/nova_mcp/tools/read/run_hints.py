"""What a look says of the caller's open runs on the site it shows."""

from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from nova_mcp.core.tokens import fit_tokens
from nova_mcp.core.urls import normalize_url, page_host, url_hash
from nova_mcp.memory.tasks.runs.service import RunPage
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import Part, maybe
from nova_mcp.tools.tasks.run_parts import ActiveInstancePart, task_awareness

BLOCK: Final = "taskAwareness"
# A line shorter than this says nothing any more.
LEAST_LINE: Final = 30


class OpenRunsPart(Part):
    profile_match: dict[str, JsonValue] | None = maybe()
    active_instances: list[ActiveInstancePart]


@dataclass(frozen=True, slots=True)
class RunHints:
    """Open runs about a host; without a line they found no room in the text."""

    host: str | None = None
    part: OpenRunsPart | None = None
    line: str = ""

    @property
    def omitted(self) -> tuple[str, ...]:
        return (BLOCK,) if self.part is not None and not self.line else ()


NO_RUNS: Final = RunHints()


async def run_hints(ctx: ToolContext, room: int) -> RunHints:
    """The runs that the tab's page belongs to by its host or as a unit, within `room` tokens of text."""
    url, host = normalize_url(ctx.tab.url), page_host(ctx.tab.url)
    if url is None or host is None:
        return NO_RUNS
    aware = task_awareness(await ctx.tasks.runs.awareness_on(ctx.caller, RunPage(host, url_hash(url))))
    told = aware.active_instances
    if not told:
        return NO_RUNS
    more = f" · {len(told) - 1} more" if len(told) > 1 else ""
    line = fit_tokens(f"{told[0].line()}{more}", room - 1) if room > LEAST_LINE else ""
    return RunHints(host, OpenRunsPart(profile_match=aware.profile_match, active_instances=told), line)


def runs_still(ctx: ToolContext, hints: RunHints) -> RunHints:
    """Nothing about a site that the tab has left meanwhile."""
    return hints if page_host(ctx.tab.url) == hints.host else NO_RUNS
