"""Writes in the transaction of their call's record: what they came to stands on the record, errors leave nothing."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select

from nova_mcp.errors import InvalidParams, NotFound
from nova_mcp.evidence.decision import decide
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, ServerId
from nova_mcp.memory.notes import memory_store
from nova_mcp.memory.notes.memory_store import NewMemory
from nova_mcp.memory.notes.tables import browser_memory

NEW = NewMemory("local", "shop.test", "note", "cheap on Mondays", None, "agent")
RECORD = CallRecord("c", Caller("local", "a", ServerId("s")), "nova.t", "write", 1, 1, CallOutcome("ok", gate_id="g"))


class Stale:
    def on_record(self, record):
        return record.with_reason("stale")


def kept(db):
    return db.read_sync(lambda conn: conn.execute(select(func.count()).select_from(browser_memory)).scalar_one())


@pytest.mark.parametrize("value", [None, 3, "word"])
def test_a_value_is_handed_back_and_leaves_the_record_alone(db, value):
    assert db.write_sync(decide, RECORD, lambda conn, record: value) == (RECORD, value)


def test_a_value_may_say_what_the_record_has_to_show(db):
    record, value = db.write_sync(decide, RECORD, lambda conn, record: Stale())
    assert isinstance(value, Stale)
    assert record == replace(RECORD, outcome=CallOutcome("ok", reason_code="stale", gate_id="g"))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidParams("invalid_params", "No.", "Try again."), "invalid"),
        (NotFound("task.instance_not_found", "Not there.", "Look."), "failed"),
    ],
)
def test_an_error_is_put_on_record_and_takes_back_what_was_written_before(db, error, kind):
    def write(conn, record):
        memory_store.save(conn, NEW, 1)
        raise error

    def both(conn):
        memory_store.save(conn, replace(NEW, content="stays"), 1)
        return decide(conn, RECORD, write)

    record, value = db.write_sync(both)
    assert value is error
    outcome = CallOutcome(kind, error.error_code, error.reason_code, "g")
    assert record == replace(RECORD, outcome=outcome)
    assert kept(db) == 1


def test_a_defect_takes_the_whole_transaction_back(db):
    def write(conn, record):
        memory_store.save(conn, NEW, 1)
        raise KeyError("a defect")

    with pytest.raises(KeyError):
        db.write_sync(decide, RECORD, write)
    assert kept(db) == 0
