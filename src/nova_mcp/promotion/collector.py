"""What an observation does to knowledge, in the transaction that writes it."""

from collections.abc import Sequence

from sqlalchemy import Connection

from nova_mcp.journal.collector import Hooks
from nova_mcp.journal.evidence import Seen
from nova_mcp.observation.model import CallRecord


def bind(conn: Connection, record: CallRecord, host: str) -> str | None:
    """The entry that an action speaks about, if it is certain which."""
    return None


def learn(conn: Connection, record: CallRecord, seen: Sequence[Seen]) -> None:
    """Everything that learning draws from the observations of one call."""


HOOKS = Hooks(bind=bind, learn=(learn,))
