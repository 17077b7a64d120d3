"""`nova stats`: how well learning works, the same figures that agents get."""

from collections.abc import Iterator
from typing import Annotated

import typer

from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.store.open_store import opened
from nova_mcp.cli.terminal import print_json, print_table, say, visible
from nova_mcp.core.clock import SystemClock
from nova_mcp.memory.journal.candidates import normal_component
from nova_mcp.memory.journal.statistics.report import StatisticsQuery
from nova_mcp.memory.journal.statistics.service import look_up
from nova_mcp.tools.learning.statistics import MemoryStatsResult, RuntimePart, answer

app = typer.Typer(add_completion=False)


@app.command()
def stats(
    hours: Annotated[int, typer.Option(min=1, max=720, help="How far back, in hours.")] = 24,
    top: Annotated[int, typer.Option(min=1, max=20, help="How long each list may get.")] = 8,
    component: Annotated[str | None, typer.Option(help="Count candidates of this component only.")] = None,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Show how well learning works: evidence, candidates, decisions, the outbox, and how pages take our acts."""
    settings = read_settings(data_dir, store)
    query = StatisticsQuery(hours, top, top, top, top, top, normal_component(component or "") or None)
    now_ms = SystemClock().now_ms()
    with opened(settings) as database:
        found = answer(query, database.read_sync(look_up, query, now_ms), now_ms)
    if json:
        print_json(found.structured())
        return
    say(f"last {found.window_hours} h{f', component {visible(query.component)}' if query.component else ''}\n")
    print_table(("figure", "value"), _figures(found))
    say("")
    print_table(("signal", "attempts", "well", "rate", "p50 ms", "p95 ms", "most often at"), _signals(found))
    rollout = found.rollout_decision
    why = f": {', '.join(rollout.blockers)}" if rollout.blockers else ""
    say(f"\nrollout {'ready' if rollout.ready else 'not ready'}{why}")


def _figures(found: MemoryStatsResult) -> Iterator[tuple[str, str]]:
    lcj, done, kpis = found.lcj, found.finalize, found.kpis
    yield "calls", f"{lcj.tool_events_window} of {lcj.tool_events_total}, {_share(kpis.tool_success_rate)} well"
    yield "observations", f"{lcj.observations_window} of {lcj.observations_total}"
    yield "candidates", f"{lcj.candidates_window} of {lcj.candidates_total}"
    yield (
        "  how they stand",
        f"{lcj.candidates_unverified} unverified, {lcj.candidates_verified} verified, "
        f"{lcj.candidates_disproven} disproven, {lcj.candidates_promotable} promotable",
    )
    for one in lcj.top_components_window:
        yield f"  {one.component}", str(one.candidates)
    yield "curated", f"{lcj.curated_window} of {lcj.curated_total}"
    yield "decisions", f"{done.decisions_window} of {done.decisions_total}, {_share(kpis.commit_rate)} commits"
    for reason in done.skip_reasons_window:
        yield f"  skipped: {reason.reason_code}", str(reason.count)
    yield (
        "outbox",
        f"{done.outbox_pending} pending, {done.outbox_leased} leased, {done.outbox_done} done, "
        f"{done.outbox_failed} failed",
    )
    yield "outbox health", _share(kpis.outbox_health)
    yield "contract actions verified", _share(kpis.verified_action_rate)
    yield "false successes caught", str(kpis.false_success_caught)
    yield "verified actions", str(found.rollout_decision.sample_size)


def _signals(found: MemoryStatsResult) -> Iterator[tuple[str, ...]]:
    yield _signal("scrolling", found.scroll_smart)
    yield _signal("clicks that navigate", found.click_navigation)
    yield _signal("dismissing blockers", found.dismiss_blockers)
    yield _signal("screenshots", found.screenshot_capture)


def _signal(name: str, part: RuntimePart) -> tuple[str, ...]:
    times = ("" if part.p50_ms is None else str(part.p50_ms), "" if part.p95_ms is None else str(part.p95_ms))
    place = part.top_routes[0].route if part.top_routes else ""
    return (name, str(part.attempts), str(part.successes), _share(part.success_rate), *times, place)


def _share(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1%}"
