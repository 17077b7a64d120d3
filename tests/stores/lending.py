"""One PostgreSQL database lent from test to test: emptied in between, replaced where a test has left its mark on it.

A database of its own for every test costs some four hundred files each, made and removed again.
"""

from bench.postgres import Cluster
from sqlalchemy import Connection, Engine, create_engine, text

_OTHERS = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
               " AND pid <> pg_backend_pid()")  # fmt: skip
_SHAPE = text(
    "SELECT md5(coalesce(string_agg(line, ';' ORDER BY line), '')) FROM ("
    " SELECT concat_ws(':', table_schema, table_name, column_name, data_type, is_nullable, column_default) AS line"
    " FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
    " UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'"
    " UNION ALL SELECT concat_ws(':', conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace"
    " UNION ALL SELECT concat_ws(':', tgrelid::regclass, tgname, tgenabled) FROM pg_trigger WHERE NOT tgisinternal"
    " UNION ALL SELECT version_num FROM alembic_version) AS lines"
)
# What the planner has learned about a table would be another test's experience.
_ANALYSED = text(
    "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND reltuples > 0"
)
_TABLES = text("SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'")
_SEQUENCES = text("SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL")


class Lender:
    """Hands out one database after the other; two tests never see each other's rows."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lent: Engine | None = None
        self._shape: str | None = None

    def lend(self) -> str:
        """A store with the current schema and nothing in it. The last one lent is taken back by this."""
        if self._lent is None or not self._emptied(self._lent):
            self.close()
            # The way in stays open: a new one would have to learn all tables anew. Tests may restart the server.
            url = self._cluster.fresh_database(template=self._cluster.migrated)
            self._lent = create_engine(url, pool_pre_ping=True, pool_size=1)
            with self._lent.connect() as conn:
                self._shape = conn.scalar(_SHAPE)
        return self._lent.url.render_as_string()

    def close(self) -> None:
        if self._lent is not None:
            self._lent.dispose()

    def _emptied(self, lent: Engine) -> bool:
        with lent.begin() as conn:
            conn.execute(_OTHERS)
            if conn.scalar(_SHAPE) != self._shape or conn.scalar(_ANALYSED):
                return False
            _empty(conn)
        return True


def _empty(conn: Connection) -> None:
    tables = list(conn.scalars(_TABLES))
    asked = " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT FROM \"{name}\")" for name in tables)
    filled = list(conn.scalars(text(asked)))
    # Rows go in any order, past the references between them and past the triggers that keep evidence from going.
    conn.execute(text("SET LOCAL session_replication_role = replica"))
    for name in filled:
        conn.execute(text(f'DELETE FROM "{name}"'))
    for name in conn.scalars(_SEQUENCES):
        conn.execute(text(f'ALTER SEQUENCE "{name}" RESTART'))
