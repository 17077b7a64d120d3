"""What a tool may reach while it runs, and where it leaves its evidence."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from nova_mcp.core.clock import Ports
from nova_mcp.core.connections import AgentConnection
from nova_mcp.core.values import Json
from nova_mcp.evidence.model import Caller, CallRecord, Flag, Learned, Signals
from nova_mcp.settings import Settings

T = TypeVar("T")
Progress = Callable[[float, float | None, str], Awaitable[None]]

if TYPE_CHECKING:
    from nova_mcp.browser.process.runtime import Browser
    from nova_mcp.browser.targets.registry import Tab
    from nova_mcp.evidence.decision import Derive, Write
    from nova_mcp.evidence.outage import Also
    from nova_mcp.memory.claims.book import ClaimBook
    from nova_mcp.memory.facts.service import FactKeeper
    from nova_mcp.memory.journal.service import Journal
    from nova_mcp.memory.journal.statistics.service import Statistician
    from nova_mcp.memory.notes.domain_service import DomainNotes
    from nova_mcp.memory.notes.note_memory import NoteMemory
    from nova_mcp.memory.notes.service import NoteKeeper
    from nova_mcp.memory.promotion.learning import Learning
    from nova_mcp.memory.tasks.service import TaskMemory
    from nova_mcp.secrets.store import SecretStore
    from nova_mcp.tools.catalogue import Catalogue
    from nova_mcp.tools.spec import Image
    from nova_mcp.verification.verifier import Verifier


@dataclass(slots=True)
class Evidence:
    """What the ledger should know about this call; filled while it runs, read even if it dies."""

    tab: "Tab | None" = None
    action_dispatched: bool | None = None
    # Input that prepared the decisive one has reached the page, whatever becomes of that one.
    prepared_page: bool = False
    # The decisive input provably did not arrive.
    undelivered: bool = False
    selector: str | None = None
    fingerprint_id: str | None = None
    verification: str | None = None
    input_is_harmless: bool = False
    flags: set[Flag] = field(default_factory=set)
    # What the pictures made for this call weigh.
    image_bytes: int = 0
    # The work context this call belongs to.
    task_id: str | None = None
    # What learning may draw from the call.
    signals: Signals = field(default_factory=Signals)
    # Layers over the page that an action came across, by kind, each with a selector that lasts where it has one.
    layers: dict[str, str] = field(default_factory=dict)
    # The host whose notes were heeded last in this call, and when.
    noted_host: str | None = None
    noted_at_ms: float = 0.0
    # What to remember as told, once the answer is sure to go out.
    told: "list[Callable[[], None]]" = field(default_factory=list)
    # The intent this call's record closes, and what is derived from the record in its own transaction.
    closes: str | None = None
    also: "list[Also]" = field(default_factory=list)

    @property
    def learned(self) -> "list[Learned]":
        """What the record of this call has raised; known once it is committed."""
        return self.signals.learned

    def settle_touch(self, arrived: bool | None) -> None:
        """What is proven about the decisive input; None leaves the question as it stood."""
        if arrived is not None:
            self.undelivered = not arrived
            self.action_dispatched = arrived or self.prepared_page


@dataclass(frozen=True, slots=True)
class StepCall:
    """A call that a running call makes as one of its steps."""

    tool: str
    arguments: Mapping[str, Json]
    budget_ms: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """How a step ended; its own record is already in the ledger."""

    structured: Mapping[str, Json]
    text: str
    dispatched: bool
    images: "tuple[Image, ...]" = ()
    # What the step's answer tells; whoever passes that answer on has told it.
    told: tuple[Callable[[], None], ...] = ()


RunStep = Callable[[StepCall], Awaitable[StepAnswer]]


async def no_steps(step: StepCall) -> StepAnswer:
    raise AssertionError("only the pipeline can run steps")


class OpenRecord(Protocol):
    """The record of a call whose tool still runs, as the tool may commit it."""

    async def commit(self, write: "Write[T]") -> T: ...

    async def commit_derived(self, derive: "Derive[T]", reason_code: str | None = None) -> T: ...


class NoRecord:
    """For calls outside of a pipeline, which have no record."""

    async def commit(self, write: "Write[T]") -> T:
        raise AssertionError("only the pipeline can commit a call")

    async def commit_derived(self, derive: "Derive[T]", reason_code: str | None = None) -> T:
        raise AssertionError("only the pipeline can commit a call")


async def no_check() -> None:
    """For calls outside of a pipeline, which records nothing of them."""


@dataclass(frozen=True, slots=True)
class CallInfo:
    """Which call this is, who makes it, and how to tell them that it takes a while.

    `intent` makes the record that says what is about to be sent; the sender writes it first.
    """

    call_id: str
    tool_name: str
    caller: Caller
    connection: AgentConnection
    progress: Progress
    intent: Callable[[str], CallRecord]
    session_id: str | None = None
    step: RunStep = no_steps
    # Raises StoreUnavailable when what is about to be done could not be recorded.
    require_store: Callable[[], Awaitable[None]] = no_check
    record: OpenRecord = field(default_factory=NoRecord)
    # What the answer's text has to leave free of its budget for what gates have to say.
    reserved_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """What Nova remembers by, one keeper per subsystem."""

    verifier: "Verifier"
    journal: "Journal"
    statistician: "Statistician"
    facts: "FactKeeper"
    learning: "Learning"
    tasks: "TaskMemory"
    notes: "NoteMemory"
    claims: "ClaimBook"


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Handed to every tool; eight fields at most."""

    call: CallInfo
    evidence: Evidence
    ports: Ports
    settings: Settings
    browser: "Browser"
    catalogue: "Catalogue"
    memory: Memory
    secrets: "SecretStore"

    async def commit(self, write: "Write[T]") -> T:
        """Close this call's record as done and commit it together with what `write(conn, record)` does; its value.

        `write` runs first, so that the record can say what it came to: a value with `on_record` says it itself. A
        NovaError takes back what was written, stands on the record, and is raised here once that is committed.
        StoreUnavailable when nothing could be written. A call is committed once, after everything else it does.
        """
        return await self.call.record.commit(write)

    async def commit_derived(self, derive: "Derive[T]", reason_code: str | None = None) -> T:
        """Commit this call's record, and run `derive(conn, record, link)` behind it and all that the server derives.

        `derive` must not refuse: an error in it takes back the whole transaction, the record included, and reads as
        StoreUnavailable. `reason_code` is what the answer will give as its reason."""
        return await self.call.record.commit_derived(derive, reason_code)

    @property
    def verifier(self) -> "Verifier":
        return self.memory.verifier

    @property
    def facts(self) -> "FactKeeper":
        return self.memory.facts

    @property
    def learning(self) -> "Learning":
        return self.memory.learning

    @property
    def tasks(self) -> "TaskMemory":
        return self.memory.tasks

    @property
    def claims(self) -> "ClaimBook":
        return self.memory.claims

    @property
    def notes(self) -> "NoteKeeper":
        return self.memory.notes.kept

    @property
    def domain_notes(self) -> "DomainNotes":
        return self.memory.notes.sites

    @property
    def caller(self) -> Caller:
        return self.call.caller

    @property
    def connection(self) -> AgentConnection:
        return self.call.connection

    @property
    def tab(self) -> "Tab":
        """The resolved target; tools that declare one always have it."""
        if self.evidence.tab is None:
            raise LookupError("this tool declared no target")
        return self.evidence.tab
