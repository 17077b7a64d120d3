"""What closed-loop acting needs to see of a page; the browser implements it, tests script it."""

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from nova_mcp.verification.model import FactAddress, Reading, Sample


@dataclass(frozen=True, slots=True)
class FactHints:
    """What the action is about, for facts that can't be read without it: the text sent, the label to be chosen."""

    text: str | None = None
    label: str | None = None
    # By fact key: the texts that a value which must not leave the page is compared with inside it.
    compared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Follower(Protocol):
    """Facts of one page from before the dispatch until the verdict."""

    @property
    def baseline(self) -> Reading:
        """The facts as they stood before anything was sent."""
        ...

    @property
    def document(self) -> int:
        """The document the baseline was read in."""
        ...

    def pressed(self) -> None:
        """Input is being sent now; what began earlier is not the action's doing."""
        ...

    async def next(self, wait_ms: float) -> Sample | None:
        """The next sample once something changed; None when nothing did within that time."""
        ...

    async def look(self) -> Sample:
        """Everything as it stands at this moment, asked for instead of waited for."""
        ...


class Witness(Protocol):
    """One page as the verifier sees it."""

    async def read(self, addresses: Collection[FactAddress]) -> Reading:
        """The facts as they stand now; what can't be read is unseen, never an error."""
        ...

    def follow(self, addresses: Collection[FactAddress]) -> AbstractAsyncContextManager[Follower]:
        """Watch these facts; entering arms the page and reads the baseline."""
        ...
