"""The engine's promises: whole units of work, order, cancellation, schema, and clear errors."""

import sqlite3
import subprocess
import sys
import threading

import anyio
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.exc import ProgrammingError

import nova_mcp.evidence.store
import nova_mcp.evidence.targets.store
import nova_mcp.memory.claims.store
import nova_mcp.memory.facts.tables
import nova_mcp.memory.journal.candidate_store
import nova_mcp.memory.journal.finalize_store
import nova_mcp.memory.journal.statistics.tables
import nova_mcp.memory.journal.store
import nova_mcp.memory.knowledge.tables
import nova_mcp.memory.notes.tables
import nova_mcp.memory.promotion.tables
import nova_mcp.memory.tasks.tables
import nova_mcp.verification.goals.store
import nova_mcp.verification.kill_switches
import nova_mcp.verification.store
from nova_mcp.storage import schema
from nova_mcp.storage.engine import Database, Tuning
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.storage.migrations.runner import config


def add(conn, name, value=1):
    conn.execute(text("INSERT INTO id_counter (name, value) VALUES (:name, :value)"), {"name": name, "value": value})


def names(conn):
    return conn.execute(text("SELECT name FROM id_counter ORDER BY name")).scalars().all()


async def test_a_unit_of_work_is_one_transaction(db):
    def both(conn):
        add(conn, "one")
        add(conn, "one")

    with pytest.raises(Exception, match=r"(?i)unique"):
        await db.write(both)
    assert await db.read(names) == []


async def test_keyword_arguments_reach_the_unit_of_work(db):
    await db.write(add, "one", value=7)
    assert await db.read(lambda conn: conn.execute(text("SELECT value FROM id_counter")).scalar()) == 7


async def test_cancelling_the_caller_does_not_stop_the_work(db):
    started, release = threading.Event(), threading.Event()

    def slow(conn):
        started.set()
        release.wait(20)
        add(conn, "late")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(db.write, slow)
        await anyio.to_thread.run_sync(started.wait)
        tasks.cancel_scope.cancel()
    assert await db.read(names) == []
    release.set()
    await db.close()
    with Database.open(db.url.render_as_string(hide_password=False)) as again:
        assert again.read_sync(names) == ["late"]


async def test_cancelling_the_caller_does_not_drop_work_that_still_waits_in_line(store_url, open_db):
    db = open_db(store_url, tuning=Tuning(postgres_threads=1))
    started, release = threading.Event(), threading.Event()

    def block(conn):
        started.set()
        release.wait(20)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(db.write, block)
        await anyio.to_thread.run_sync(started.wait)
        tasks.start_soon(db.write, add, "queued")
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    release.set()
    await db.write(add, "after")
    assert await db.read(names) == ["after", "queued"]


async def test_a_failing_unit_does_not_harm_the_next(db):
    def fail(conn):
        raise KeyError("x")

    for _ in range(5):
        with pytest.raises(KeyError):
            await db.write(fail)
        with pytest.raises(KeyError):
            await db.read(fail)
    await db.write(add, "fine")
    assert await db.read(names) == ["fine"]


async def test_a_read_sees_one_moment(db):
    await db.write(add, "a")

    def twice(conn):
        before = names(conn)
        writer = threading.Thread(target=db.write_sync, args=(add, "b"))
        writer.start()
        writer.join()
        return before, names(conn)

    assert await db.read(twice) == (["a"], ["a"])
    assert await db.read(names) == ["a", "b"]


async def test_reads_cannot_write(db):
    with pytest.raises(StoreUnavailable) as refusal:
        await db.read(add, "x")
    assert refusal.value.reason == "readonly"


async def test_a_closed_database_says_so(db):
    await db.close()
    with pytest.raises(RuntimeError, match="closed"):
        await db.write(names)
    await db.close()


def test_an_unknown_kind_of_store_is_refused():
    with pytest.raises(ValueError, match="unknown kind of store"):
        Database.open("mysql://localhost/x")


def test_a_store_without_a_file_is_refused():
    with pytest.raises(ValueError, match="needs a file"):
        Database.open("sqlite://")


# -- schema ----------------------------------------------------------------------------------------------------------


def test_the_migrations_end_in_exactly_the_tables_the_code_uses(empty_url, open_db):
    for table in (
        nova_mcp.memory.claims.store.claim_journal,
        nova_mcp.evidence.targets.store.id_counter,
        nova_mcp.memory.journal.candidate_store.candidate,
        nova_mcp.memory.facts.tables.fact,
        nova_mcp.memory.journal.finalize_store.outbox_job,
        nova_mcp.memory.journal.statistics.tables.statistic_hour,
        nova_mcp.memory.journal.store.tool_event,
        nova_mcp.memory.knowledge.tables.knowledge_entry,
        nova_mcp.memory.notes.tables.domain_note,
        nova_mcp.evidence.store.ledger_link,
        nova_mcp.memory.promotion.tables.learning_step,
        nova_mcp.memory.tasks.tables.task_unit,
        nova_mcp.verification.goals.store.goal,
        nova_mcp.verification.store.transition,
        nova_mcp.verification.kill_switches.kill_switch,
    ):
        assert table.metadata is schema.metadata
    db = open_db(empty_url)
    assert db.read_sync(lambda conn: compare_metadata(MigrationContext.configure(conn), schema.metadata)) == []


def test_the_listed_revisions_are_the_packaged_ones():
    script = ScriptDirectory.from_config(config())
    assert [item.revision for item in script.walk_revisions()][::-1] == list(schema.REVISIONS)


def test_a_store_of_a_newer_nova_is_refused_and_left_as_it_is(db, store_url, bare_engine):
    with bare_engine.begin() as conn:
        conn.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreUnavailable) as refusal:
        Database.open(store_url)
    assert refusal.value.reason == "schema_newer"
    with bare_engine.connect() as conn:
        assert conn.execute(text("SELECT version_num FROM alembic_version")).scalar() == "9999"


def test_a_store_of_a_newer_nova_is_not_touched_by_a_server_that_refuses_it(empty_sqlite_url, tmp_path):
    Database.open(empty_sqlite_url).close_sync()
    path = tmp_path / "nova.db"
    # As a newer server leaves it that was killed: its revision stands in the log alone.
    newer = sqlite3.connect(path, isolation_level=None)
    newer.execute("UPDATE alembic_version SET version_num = '9999'")
    left = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    newer.close()
    for name, data in left.items():
        (tmp_path / name).write_bytes(data)
    for open_store in (Database.open, Database.open_for_reading):
        with pytest.raises(StoreUnavailable) as refusal:
            open_store(empty_sqlite_url)
        assert refusal.value.reason == "schema_newer"
        assert "newer Nova" in refusal.value.message
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == left


def test_a_running_server_writes_nothing_into_a_store_that_a_newer_nova_has_upgraded(db, bare_engine):
    db.write_sync(add, "before")
    with bare_engine.begin() as conn:
        conn.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreUnavailable) as refusal:
        db.write_sync(add, "after")
    assert refusal.value.reason == "schema_newer"
    assert "newer Nova" in refusal.value.message
    assert db.read_sync(names) == ["before"]


@pytest.mark.postgres
def test_a_reader_creates_no_schema_where_there_is_none(empty_postgres_url):
    for _ in range(2):
        with pytest.raises(StoreUnavailable) as refusal:
            Database.open_for_reading(empty_postgres_url)
        assert refusal.value.reason == "not_a_store"
    with pytest.raises(StoreUnavailable) as refusal:
        Database.open(empty_postgres_url, create=False)
    assert refusal.value.reason == "missing"
    engine = create_engine(empty_postgres_url)
    assert inspect(engine).get_table_names() == []
    engine.dispose()


def test_a_reader_of_either_store_can_not_write(store_url):
    with Database.open_for_reading(store_url) as reader:
        assert reader.read_sync(names) == []
        with pytest.raises(StoreUnavailable) as refusal:
            reader.read_sync(add, "x")
        assert refusal.value.reason == "readonly"
        with pytest.raises(RuntimeError):
            reader.write_sync(add, "x")


async def test_trouble_names_a_store_that_could_not_take_a_record(db, bare_engine, store_url):
    assert await db.trouble(5) is None
    with bare_engine.begin() as conn:
        conn.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert (await db.trouble(5)).reason == "schema_newer"


def test_opening_an_up_to_date_store_does_not_import_alembic(db, store_url):
    program = (
        "import sys; from nova_mcp.storage.engine import Database; "
        f"Database.open({store_url!r}).close_sync(); print('alembic' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
    )


# -- PostgreSQL only -------------------------------------------------------------------------------------------------


@pytest.mark.postgres
def test_a_database_that_does_not_answer_is_reported_as_down(tmp_path):
    with pytest.raises(StoreUnavailable) as refusal:
        Database.open(f"postgresql://nova@/nova?host={tmp_path}")
    assert refusal.value.reason == "down"


@pytest.mark.postgres
def test_after_a_restart_of_the_database_the_next_unit_of_work_succeeds(postgres_url, postgres_cluster, open_db):
    db = open_db(postgres_url)
    db.write_sync(add, "before")
    postgres_cluster.restart()
    db.write_sync(add, "after")
    assert db.read_sync(names) == ["after", "before"]


@pytest.mark.postgres
def test_a_connection_lost_in_mid_work_is_reported_as_down_and_rolled_back(postgres_url, open_db):
    db = open_db(postgres_url)

    def lose(conn):
        add(conn, "lost")
        pid = conn.execute(text("SELECT pg_backend_pid()")).scalar()
        db.read_sync(lambda other: other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid}).scalar())
        add(conn, "more")

    with pytest.raises(StoreUnavailable) as refusal:
        db.write_sync(lose)
    assert refusal.value.reason == "down"
    assert db.read_sync(names) == []


@pytest.mark.postgres
def test_a_row_that_another_writer_keeps_locked_is_reported_as_locked(postgres_url, open_db):
    db = open_db(postgres_url)
    hasty = open_db(postgres_url, tuning=Tuning(busy_timeout_ms=50))
    db.write_sync(add, "row")

    def hold(conn):
        conn.execute(text("UPDATE id_counter SET value = 2"))
        with pytest.raises(StoreUnavailable) as refusal:
            hasty.write_sync(lambda other: other.execute(text("UPDATE id_counter SET value = 3")))
        return refusal.value.reason

    assert db.write_sync(hold) == "locked"


@pytest.mark.postgres
def test_states_of_the_database_are_told_from_defects_of_a_statement(postgres_url, open_db):
    db = open_db(postgres_url)

    def fail(conn, state):
        conn.execute(text(f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{state}'; END $$"))

    for state, reason in {"53100": "full", "25006": "readonly", "XX001": "corrupt", "57P03": "down"}.items():
        with pytest.raises(StoreUnavailable) as refusal:
            db.write_sync(fail, state)
        assert refusal.value.reason == reason
    with pytest.raises(ProgrammingError):
        db.write_sync(fail, "42501")
