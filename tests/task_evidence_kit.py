"""Runs, members and units as rows, for tests about what of them is proven."""

from sqlalchemy import Connection, insert, select

from nova_mcp.core.urls import url_hash
from nova_mcp.memory.tasks.coverage.evidence_rules import unseen
from nova_mcp.memory.tasks.coverage.locators import BadLocator, Declared, unit_locator
from nova_mcp.memory.tasks.effective_context import Overrides, effective_context
from nova_mcp.memory.tasks.model import CompletionCondition, EvidencePolicy, TaskContent
from nova_mcp.memory.tasks.tables import task_instance, task_instance_member, task_unit

CONDITION = CompletionCondition("exhaustive", "page", "all_units_processed", None, EvidencePolicy("none"))
CONTENT = TaskContent("audit", "Audit", "Look around", CONDITION)
CONTEXT = effective_context(CONTENT, {}, Overrides()).text
ADA = ("local", "ada")
BOB = ("local", "bob")


def open_run(
    conn: Connection,
    instance_id: str = "run",
    *,
    owner=ADA,
    joined_ms: int = 100_000,
    unit_kind: str = "page",
    coverage_mode: str = "exhaustive",
    task_kind: str | None = None,
    target_host: str | None = None,
) -> None:
    conn.execute(
        insert(task_instance),
        {
            "instance_id": instance_id,
            "principal": owner[0],
            "instance_rev": 0,
            "status": "pending",
            "discovery_state": "unknown",
            "effective_context": CONTEXT,
            "effective_context_hash": "",
            "overrides": "{}",
            "task_kind": task_kind,
            "target_host": target_host,
            "task_kind_source": "none",
            "unit_kind": unit_kind,
            "coverage_mode": coverage_mode,
            "resume_state": "{}",
            "checks_state": "{}",
            "beginning": "{}",
            "units": 0,
            "ledger_gap": False,
            "created_by": owner[1],
            "started_at_ms": joined_ms,
            "last_activity_at_ms": joined_ms,
        },
    )
    join(conn, instance_id, owner, joined_ms)


def join(conn: Connection, instance_id: str, owner, joined_ms: int) -> None:
    conn.execute(
        insert(task_instance_member),
        {"instance_id": instance_id, "principal": owner[0], "agent_id": owner[1], "joined_at_ms": joined_ms},
    )


def add_units(
    conn: Connection, *urls: str, instance_id: str = "run", kind: str = "page", declared: Declared | None = None
) -> list[str]:
    """Units as a run registers them; their keys."""
    keys = []
    known = len(conn.execute(select(task_unit.c.unit_key).where(task_unit.c.instance_id == instance_id)).all())
    for number, text in enumerate(urls, known):
        locator = unit_locator(kind, text, declared=declared)
        assert not isinstance(locator, BadLocator)
        is_url = kind in ("page", "url")
        key = f"url:{url_hash(locator.value)}" if is_url else text
        found = unseen(None if locator is None else locator.type)
        conn.execute(
            insert(task_unit),
            {
                "instance_id": instance_id,
                "unit_key": key,
                "ordinal": number,
                "label": "",
                "url": locator.value if is_url else None,
                "locator_type": None if locator is None else locator.type,
                "locator_value": None if locator is None else locator.value,
                "locator_hash": None if locator is None else locator.hash,
                "status": "discovered",
                "late": False,
                "observed_count": 0,
                "grade": found.name,
                "grade_reason": found.reason_code,
                "best_reads": 0,
                "best_dwell_ms": 0,
                "updated_at_ms": 0,
            },
        )
        keys.append(key)
    return keys


def unit(conn: Connection, key: str, instance_id: str = "run"):
    wanted = select(task_unit).where(task_unit.c.instance_id == instance_id, task_unit.c.unit_key == key)
    return conn.execute(wanted).one()


def grade_of(conn: Connection, key: str, instance_id: str = "run") -> tuple[str, str | None]:
    row = unit(conn, key, instance_id)
    return row.grade, row.grade_reason
