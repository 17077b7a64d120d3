"""Which connection of an owner works in which tab: whether `active` still means one thing; pure."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

# As long as a connection that was heard of counts as being there; it can't be seen to go.
CONNECTION_LIVES_MS: Final = 30 * 60_000
MOST_CONNECTIONS: Final = 50


@dataclass(frozen=True, slots=True)
class Use:
    """The tab a connection worked in last."""

    connection: str
    target_id: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Turns:
    """The latest use of each connection, oldest first, and when one last came back after another."""

    uses: tuple[Use, ...] = field(default=())
    alternated_at_ms: int | None = None


def _recent(at_ms: int | None, now_ms: int) -> bool:
    # A clock that was set back must not keep a connection alive for ever.
    return at_ms is not None and abs(now_ms - at_ms) <= CONNECTION_LIVES_MS


def _came_back(turns: Turns, connection: str) -> bool:
    known = any(use.connection == connection for use in turns.uses)
    return known and turns.uses[-1].connection != connection


def used(turns: Turns, use: Use) -> Turns:
    """After a call on a tab. A client that reconnects is a new connection whose predecessor never comes back."""
    alternated = use.at_ms if _came_back(turns, use.connection) else turns.alternated_at_ms
    others = tuple(one for one in turns.uses if one.connection != use.connection and _recent(one.at_ms, use.at_ms))
    return Turns((*others, use)[-MOST_CONNECTIONS:], alternated)


def closed(turns: Turns, target_id: str) -> Turns:
    """After a tab is gone: nobody means it any more."""
    return replace(turns, uses=tuple(use for use in turns.uses if use.target_id != target_id))


def in_turn(turns: Turns, connection: str, now_ms: int) -> Collection[str]:
    """The tabs that connections use in turn, if it is more than one; `connection` is the one that asks."""
    live = [use for use in turns.uses if _recent(use.at_ms, now_ms)]
    tabs = tuple(dict.fromkeys(use.target_id for use in live))
    alternate = _recent(turns.alternated_at_ms, now_ms) or _came_back(Turns(tuple(live)), connection)
    return tabs if alternate and len(tabs) > 1 else ()
