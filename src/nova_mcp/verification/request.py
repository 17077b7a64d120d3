"""What a call wants verified, and the page it faces."""

from dataclasses import dataclass

from nova_mcp.evidence.model import Caller
from nova_mcp.verification.model import Contract, GuardedCommit
from nova_mcp.verification.witness import Witness


@dataclass(frozen=True, slots=True)
class Ask:
    """What a call wants verified, and who makes it."""

    caller: Caller
    call_id: str
    tool_name: str
    target_id: str
    contract: Contract | None = None
    retry_of: str | None = None
    intent_key: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Facing:
    """The page at the moment a call wants to act on it.

    `is_commit` says that the control commits something; `control` and `fields` tell one commit from another.
    `observed_at_ms` is when this agent last looked at the page.
    """

    witness: Witness
    is_commit: bool
    host: str | None
    origin: str
    control: str
    fields: str
    element: str
    document: int
    observed_at_ms: int | None = None
    # Facts of the contract that can't be read on any page like this one, each with the reason.
    unreadable: tuple["Unreadable", ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A fact whose selector is no CSS, or whose frame is not in the page."""

    fact_key: str
    why: str


class ResolvedEarlier(Exception):
    """An earlier, undecided dispatch of the same commit turns out to have worked."""

    def __init__(self, commit: GuardedCommit) -> None:
        super().__init__(commit.transition_id)
        self.commit = commit
