"""Runs in a store without a server: whom they belong to, what is reported to them, and what comes of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from sqlalchemy import Connection

from nova_mcp.errors import NovaError
from nova_mcp.memory.tasks.model import Check, CompletionCondition, EvidencePolicy, TaskContent
from nova_mcp.memory.tasks.runs.create import Created, RunCreator, RunWish
from nova_mcp.memory.tasks.runs.event_codec import payload_hash
from nova_mcp.memory.tasks.runs.rules import CheckUpdate, FindingReport, FoundUnit, Report, UnitName, UnitUpdate
from nova_mcp.memory.tasks.runs.store import Run, run_of
from nova_mcp.memory.tasks.runs.transactions import Change, Occasion, Reported, Runs

T = TypeVar("T")
ADA = ("local", "ada")
BOB = ("local", "bob")
EVE = ("other", "ada")
NOW = 1_700_000_000_000

_numbers = count(1)


class NothingSeen:
    """Nobody looks at any page."""

    def fill(self, conn: Connection, instance_id: str, unit_keys: Any, now_ms: int) -> None:
        return

    def fill_for(self, conn: Connection, instance_id: str, owner: Any, now_ms: int) -> None:
        return

    def refresh(self, conn: Connection, instance_id: str, now_ms: int, lives: Any) -> None:
        return


RUNS = Runs("block", NothingSeen())
CREATOR = RunCreator(NothingSeen(), lambda *_: [])


def items(evidence: str = "none", mode: str = "exhaustive", **more: Any) -> TaskContent:
    stop = ("all_units_processed", None) if mode == "exhaustive" else ("checked_units", 1)
    condition = CompletionCondition(mode, more.pop("kind", "item"), *stop, EvidencePolicy(evidence))
    return TaskContent("audit", "Audit", "Look", condition, **more)


CHECKED = items(mandatory_checks=(Check("c1", "First"), Check("c2", "Second")))


def new_id() -> str:
    return f"{next(_numbers):032x}"


def begin(conn: Connection, content: TaskContent = CHECKED, owner: tuple[str, str] = ADA, **wish: Any) -> Run:
    at_ms = wish.pop("at_ms", NOW)
    made = CREATOR.create(conn, Occasion(owner, at_ms), RunWish(content=content, **wish), new_id())
    assert isinstance(made, Created), made
    return made.run


def change(run: Run, rev: int, event_id: str | None = None, kind: Any = "progress", payload: Any = None) -> Change:
    name = event_id or f"event-{next(_numbers)}"
    return Change(kind, run.instance_id, rev, name, payload_hash(kind, {"payload": payload or name}))


@dataclass
class Story:
    """One run that is told one thing after another."""

    conn: Connection
    run: Run
    owner: tuple[str, str] = ADA
    at_ms: int = NOW
    runs: Runs = field(default_factory=lambda: RUNS)

    @property
    def now(self) -> Run:
        found = run_of(self.conn, self.owner[0], self.run.instance_id)
        assert found is not None
        return found

    def tell(self, event_id: str | None = None, rev: int | None = None, **report: Any) -> Any:
        sent = change(self.run, self.now.state.rev if rev is None else rev, event_id)
        return self.runs.progress(self.conn, Occasion(self.owner, self.at_ms), sent, Report(**report))

    def complete(self, event_id: str | None = None) -> Any:
        sent = change(self.run, self.now.state.rev, event_id, "complete")
        return self.runs.complete(self.conn, Occasion(self.owner, self.at_ms), sent, Reported(), None)

    def abort(self, outcome: Any = "aborted") -> Any:
        sent = change(self.run, self.now.state.rev, None, "abort")
        return self.runs.abort(self.conn, Occasion(self.owner, self.at_ms), sent, outcome, "not needed")


def tried(work: Callable[[], T]) -> T | NovaError:
    """What a write came to, an error of the call included."""
    try:
        return work()
    except NovaError as error:
        return error


def found(*keys: str) -> tuple[FoundUnit, ...]:
    return tuple(FoundUnit(UnitName(key=key)) for key in keys)


def moved(status: Any, *keys: str) -> tuple[UnitUpdate, ...]:
    return tuple(UnitUpdate(UnitName(key=key), status, "because") for key in keys)


def pages(*urls: str) -> tuple[FoundUnit, ...]:
    return tuple(FoundUnit(UnitName(url=url)) for url in urls)


def moved_pages(status: Any, *urls: str) -> tuple[UnitUpdate, ...]:
    return tuple(UnitUpdate(UnitName(url=url), status, "because") for url in urls)


def findings(*keys: str) -> tuple[FindingReport, ...]:
    return tuple(FindingReport(key, f"about {key}") for key in keys)


def passed(*checks: str) -> tuple[CheckUpdate, ...]:
    return tuple(CheckUpdate(one, "satisfied") for one in checks)
