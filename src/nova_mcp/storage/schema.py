"""The shared table catalogue and the steps that bring an older or empty store up to date."""

from sqlalchemy import Connection, MetaData, inspect, text

from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.storage.prepared import Prepared

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Listed here so that an up-to-date store opens without importing Alembic, which costs hundreds of milliseconds.
REVISIONS = ("0012",)
HEAD = REVISIONS[-1]
# The schema before the first one listed; a store that has it is taken over by one step.
PREVIOUS = "0011"
# Schemas from before the first published version, from which no step leads here.
RETIRED = frozenset({"0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010"})
_MIGRATION_LOCK = 0x6E6F7661


def upgrade(conn: Connection) -> bool:
    """Bring the schema to HEAD inside the caller's transaction; True when something had to be done.

    Servers starting together queue here: SQLite callers hold the write lock already, PostgreSQL ones wait on an
    advisory lock that the end of the transaction releases.
    """
    if current_revision(conn) == HEAD:
        return False
    if conn.dialect.name == "postgresql":
        conn.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        if current_revision(conn) == HEAD:
            return False
    _migrate(conn)
    return True


def current_revision(conn: Connection) -> str | None:
    if not inspect(conn).has_table("alembic_version"):
        return None
    revision: str | None = conn.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if revision in RETIRED:
        raise StoreUnavailable(
            "schema_retired", f"it has schema {revision}, and the oldest that can be upgraded is {PREVIOUS}"
        )
    if revision is not None and revision not in (PREVIOUS, *REVISIONS):
        raise StoreUnavailable("schema_newer", f"schema revision {revision}")
    return revision


def require_readable(conn: Connection, *, older: bool) -> None:
    """Refuse what this version can't read as it stands; with `older`, any revision that it knows will do."""
    revision = current_revision(conn)
    if revision is None:
        raise StoreUnavailable("not_a_store", "its schema is not there")
    if revision != HEAD and not older:
        raise StoreUnavailable("schema_older", f"revision {revision}; this Nova reads {HEAD}")


def refuse_newer(conn: Connection) -> None:
    """Refuse to write into a store that a newer Nova has upgraded while this process used it."""
    row = _REVISION.run(conn, {}).fetchone()
    if row is not None and row[0] not in REVISIONS:
        raise StoreUnavailable(
            "schema_newer",
            f"schema revision {row[0]} came while this server ran",
            hint="end this process and start the newer Nova; nothing was written",
        )


_REVISION = Prepared(text("SELECT version_num FROM alembic_version"))


def _migrate(conn: Connection) -> None:
    from nova_mcp.storage.migrations.runner import run  # only a store that must change pays for Alembic

    run(conn)
