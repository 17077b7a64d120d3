"""Trying the patterns of verification steps on what agents report, within their budget."""

from collections.abc import Mapping
from dataclasses import replace

from nova_mcp.browser.read.patterns import BadPattern, Pattern, TimedOut, try_pattern
from nova_mcp.memory.tasks.runs.transactions import Reported
from nova_mcp.memory.tasks.runs.verification_rules import PATTERN_BUDGET_MS, PatternVerdict, StepReport, text_to_match
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.tasks.content_params import ContentParams, bad_pattern


async def check_patterns(content: ContentParams) -> None:
    """Read those patterns that may take long in a process of their own; raises what is wrong with one."""
    for number, pattern in content.dear_patterns():
        match await try_pattern(Pattern(pattern, case_sensitive=True), [""], 1):
            case BadPattern(why):
                raise bad_pattern(number, f"is no regular expression: {why}")
            case TimedOut():
                raise bad_pattern(number, "takes too long to be read")


async def reported_steps(ctx: ToolContext, instance_id: str, reports: Mapping[str, StepReport]) -> Reported:
    """The reports with what their patterns came to; what a run asks for never changes, so it can be read ahead. What an
    agent says beside its result is kept with the answer to a completed run, so it has to be without secrets."""
    if not reports:
        return Reported()
    verdicts: dict[str, PatternVerdict] = {}
    for step in await ctx.tasks.runs.steps(ctx.caller.principal, instance_id):
        report = reports.get(step.step_id)
        tried = None if report is None else text_to_match(step, report)
        if tried is not None:
            verdicts[step.step_id] = await _tried(*tried)
    return Reported({name: _without_secrets(ctx, one) for name, one in reports.items()}, verdicts)


def _without_secrets(ctx: ToolContext, report: StepReport) -> StepReport:
    return report if report.detail is None else replace(report, detail=ctx.secrets.redactor.text(report.detail))


async def _tried(pattern: str, text: str) -> PatternVerdict:
    whole = Pattern(pattern, case_sensitive=True, empty_too=True, cpu_s=PATTERN_BUDGET_MS / 1000)
    match await try_pattern(whole, [text], 1):
        case TimedOut():
            return "timed_out"
        case BadPattern():
            return "unreadable"
        case hits:
            return "matched" if hits else "unmatched"
