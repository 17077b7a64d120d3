"""A run rebuilt from its events, to hold against its rows."""

from dataclasses import replace

from sqlalchemy import Connection, select

from nova_mcp.memory.tasks.model import DiscoveryState
from nova_mcp.memory.tasks.runs.event_codec import delta_of
from nova_mcp.memory.tasks.runs.rules import Finding, RunState, Unit, replay
from nova_mcp.memory.tasks.runs.store import Run, to_unit
from nova_mcp.memory.tasks.tables import task_finding, task_instance_event, task_unit


def beginning_of(conn: Connection, run: Run) -> RunState:
    """The run at revision 0: what was seeded stands first and was new then."""
    seeded = run.beginning["units"]
    rows = conn.execute(
        select(task_unit)
        .where(task_unit.c.instance_id == run.instance_id, task_unit.c.ordinal < seeded)
        .order_by(task_unit.c.ordinal)
    )
    units = {unit.key: Unit(unit.key, unit.label, unit.url, unit.locator) for unit in map(to_unit, rows)}
    discovery: DiscoveryState = "unknown"
    match run.beginning["discoveryState"]:
        case "partial" | "frozen" as known:
            discovery = known
    return RunState(discovery=discovery, total_units=len(units), units=units)


def rebuilt(conn: Connection, run: Run) -> RunState:
    """The run as its events make it, whatever its other rows say."""
    rows = conn.execute(
        select(task_instance_event.c.delta)
        .where(task_instance_event.c.instance_id == run.instance_id)
        .order_by(task_instance_event.c.rev_after)
    )
    return replay(beginning_of(conn, run), (delta_of(text) for text in rows.scalars()))


def stored_state(conn: Connection, run: Run) -> RunState:
    """The run as its rows have it, units and findings included."""
    units = conn.execute(
        select(task_unit).where(task_unit.c.instance_id == run.instance_id).order_by(task_unit.c.ordinal)
    )
    findings = conn.execute(select(task_finding).where(task_finding.c.instance_id == run.instance_id))
    return replace(
        run.state,
        units={row.unit_key: to_unit(row) for row in units},
        findings={
            row.finding_key: Finding(row.finding_key, row.detail, row.unit_key, row.severity) for row in findings
        },
    )
