"""The nouns of the evidence ledger: callers, page states, call records and chain links."""

from dataclasses import dataclass, field, replace
from typing import Literal, NewType

from nova_mcp.core.values import Json, Owner
from nova_mcp.evidence.page_sights import Credit, ScanHint, ScanSeen, Sight

ServerId = NewType("ServerId", str)

Effect = Literal["read", "navigate", "act", "commit", "write", "admin"]
MUTATING: frozenset[Effect] = frozenset({"navigate", "act", "commit", "write"})
ACTING: frozenset[Effect] = frozenset({"navigate", "act", "commit"})
INTERACTING: frozenset[Effect] = frozenset({"act", "commit"})
ActionKind = Literal["read", "navigate", "interact", "write", "meta"]
# `erasure`: bodies that were erased; `gap`: a time in which the store could not be written.
RecordKind = Literal["call", "intent", "recovery", "erasure", "gap"]
OutcomeKind = Literal["ok", "failed", "partial", "blocked_preflight", "invalid", "crashed", "cancelled", "pending"]
Flag = Literal[
    "content_exposed",
    "visual_exposed",
    "dom_exposed",
    "selector_touched",
    "navigation_intent",
    "navigation_committed",
    "mutation_attempted",
    "mutation_committed",
    "input_supplied",
    "search_executed",
    "file_exposed",
    "viewport_only",
    "full_document",
    "target_resolved",
]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: a principal, the agent it speaks for, and the server that answers."""

    principal: str
    agent_id: str
    server_id: ServerId

    @property
    def owner(self) -> Owner:
        return (self.principal, self.agent_id)


@dataclass(frozen=True, slots=True)
class PageState:
    """Where a call stood; every field is empty when the target could not be resolved."""

    target_id: str | None = None
    sandbox_id: str | None = None
    url: str | None = None
    route_key: str | None = None
    page_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Touched:
    """What a call laid hands on."""

    selector: str | None = None
    selector_hash: str | None = None
    fingerprint_id: str | None = None
    flags: frozenset[Flag] = frozenset()


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call ended."""

    kind: OutcomeKind
    error_code: int | None = None
    reason_code: str | None = None
    gate_id: str | None = None
    action_dispatched: bool | None = None
    verification: str | None = None


LearningLabel = Literal["success", "failure", "sighting", "none"]
CheckVerdict = Literal["seen", "light_drift", "hard_drift"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What a look that touched nothing said about one entry of the page's site: it is there, or it has drifted."""

    stable_id: str
    verdict: CheckVerdict
    selector: str | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """A candidate at the lowest level that a call's own evidence has raised, with what made it so."""

    scope: str
    candidate_key: str
    stable_id: str
    trigger: str


@dataclass(frozen=True, slots=True)
class Signals:
    """What a call showed beyond what its record keeps; derivations in the record's transaction read it, no body does.

    `label` is what an action taught, `contract` what its contract came to. `refused` means that Nova itself said no,
    `scripted` that an agent's own script had changed the document, `ambiguous_selector` that several entries act
    through the control, so that nobody can say which of them this was, `one_step` that the entry has others, which this
    action says nothing of.

    What an acting call shows of its page: `came_from` is the route of the document before this one, `page_state` how
    the page was built when it was last looked at, `layer` the kind of layer that the control stood in, `polarity` what
    pressing it decided there, `seen_signals` by what that layer is known, as kind, match and language.
    `failed_selector` is the first choice that did not work where the touched one did, `items` the selector and number
    of alike elements around it, `method` the one way in which a layer was got rid of. None of it is text of the page.
    """

    label: LearningLabel = "none"
    effect_observed: bool | None = None
    contract: str | None = None
    high_signal: bool = False
    structure: str | None = None
    layers: tuple[str, ...] = ()
    scripted: bool = False
    refused: bool = False
    drift: Literal["light", "hard"] | None = None
    telemetry: Literal["confirmed", "refuted", "claimed"] | None = None
    target_stable_id: str | None = None
    source_scope: str | None = None
    came_from: str | None = None
    page_state: str | None = None
    layer: str | None = None
    polarity: str | None = None
    seen_signals: tuple[tuple[str, str, str | None], ...] = ()
    failed_selector: str | None = None
    items: tuple[str, int] | None = None
    method: str | None = None
    # Host and target of what a report speaks about; the tab may have gone elsewhere since.
    reported_at: tuple[str, str] | None = None
    ambiguous_selector: bool = False
    one_step: bool = False
    # Whether the control was one that commits something.
    commits: bool = False
    # Whether it was noted what the control looks like, and in which known lists of the site it stood.
    described: bool = False
    lists: tuple[str, ...] = ()
    # The control stood in a frame, where its selector says nothing about the page around it.
    framed: bool = False
    checks: tuple[Checked, ...] = ()
    # The page, a control on it or the network did something; a focus that only moved is not meant.
    page_changed: bool = False
    # By what the dialogs that a look found open can be told apart; none of their text.
    dialogs: tuple[str, ...] = ()
    # Filled in the transaction of the record and read once that is committed: the way back to the answer.
    learned: list[Learned] = field(default_factory=list, compare=False)
    # The page that the call ended on, and what a registered scan took of it; of what comes of them the same holds.
    sight: Sight | None = None
    scan: ScanSeen | None = None
    credits: list[Credit] = field(default_factory=list, compare=False)
    hints: list[ScanHint] = field(default_factory=list, compare=False)

    @property
    def error_page(self) -> bool:
        """Whether the document is what a server or the browser shows instead of the page that was asked for."""
        return self.sight is not None and self.sight.error_page


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One envelope: a call from the moment it arrived to the moment its answer was ready."""

    call_id: str
    caller: Caller
    tool_name: str
    effect: Effect
    started_at_ms: int
    duration_ms: int
    outcome: CallOutcome
    kind: RecordKind = "call"
    via: str | None = None
    task_id: str | None = None
    instance_id: str | None = None
    before: PageState = field(default_factory=PageState)
    after: PageState = field(default_factory=PageState)
    touched: Touched = field(default_factory=Touched)
    arguments: Json = None
    closes: str | None = None
    # Gone once the record is written: neither stored nor hashed, so two records are the same without it.
    signals: Signals = field(default_factory=Signals, compare=False, repr=False)

    def with_reason(self, reason_code: str) -> "CallRecord":
        """The call went well, and its answer says why it came to nothing."""
        return replace(self, outcome=replace(self.outcome, reason_code=reason_code))

    def with_high_signal(self) -> "CallRecord":
        """The call changed something that is worth learning from."""
        return replace(self, signals=replace(self.signals, high_signal=True))


@dataclass(frozen=True, slots=True)
class Link:
    """The skeleton that stays when a body is erased."""

    server_id: ServerId
    server_seq: int
    call_id: str
    body_hash: bytes
    hash: bytes
