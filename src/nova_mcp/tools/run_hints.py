"""What a look says of the caller's open runs on the site it shows."""

from dataclasses import dataclass
from typing import Final

from nova_mcp.tasks.run_keeper import Aware
from nova_mcp.tokens import fit_tokens
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import Part
from nova_mcp.tools.task_run_parts import ActiveInstancePart, task_awareness
from nova_mcp.urls import page_host

BLOCK: Final = "taskAwareness"
# A line shorter than this says nothing any more.
LEAST_LINE: Final = 30


class OpenRunsPart(Part):
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
    """The runs whose target lies on the host that the tab shows, within `room` tokens of text."""
    host = page_host(ctx.tab.url)
    runs = () if host is None else await ctx.tasks.runs.awareness(ctx.caller, host)
    told = task_awareness(Aware(runs)).active_instances if runs else []
    if not told:
        return NO_RUNS
    more = f" · {len(told) - 1} more" if len(told) > 1 else ""
    line = fit_tokens(f"{told[0].line()}{more}", room - 1) if room > LEAST_LINE else ""
    return RunHints(host, OpenRunsPart(active_instances=told), line)


def runs_still(ctx: ToolContext, hints: RunHints) -> RunHints:
    """Nothing about a site that the tab has left meanwhile."""
    return hints if page_host(ctx.tab.url) == hints.host else NO_RUNS
