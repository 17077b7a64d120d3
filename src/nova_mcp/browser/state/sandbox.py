"""One sandbox: what it is called, what it is made of, and how it is told when it can't be had."""

from dataclasses import dataclass, field

import anyio
from playwright.async_api import BrowserContext

from nova_mcp.browser.state.sandbox_saver import COMMIT_SAVE_S, Keeper
from nova_mcp.browser.state.sandbox_traits import PLAIN, Traits
from nova_mcp.browser.state.state_format import KeptState
from nova_mcp.core.file_lock import HeldBy
from nova_mcp.errors import ClaimMismatch, InvalidParams, Precondition, Unavailable

MAX_SANDBOXES = 100
MAX_TABS = 200


@dataclass(frozen=True, slots=True)
class Shares:
    """How many sandboxes and tabs one principal may have, so that no principal takes them all from the others."""

    sandboxes: int = MAX_SANDBOXES
    tabs: int = MAX_TABS


WHOLE = Shares()


def sandbox_letters(number: int) -> str:
    """1 is A, 26 is Z, 27 is AA."""
    if number < 1:
        raise ValueError("sandboxes are counted from 1")
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def sandbox_number(letters: str) -> int:
    """The number behind letters: A is 1, AA is 27."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


@dataclass(slots=True, eq=False)
class Sandbox:
    """One jar; its context is made when first needed and made again after the browser died."""

    sandbox_id: str
    sandbox_ref: str
    principal: str
    created_at_ms: int
    traits: Traits = PLAIN
    # The one its principal works in unless another is named.
    first: bool = False
    context: BrowserContext | None = None
    making: anyio.Lock = field(default_factory=anyio.Lock)
    keeper: Keeper | None = None
    # Something the next answer has to say about this sandbox.
    notice: str | None = None
    deleted: bool = False
    # The context whose downloads have somewhere to go.
    admitted: BrowserContext | None = None

    @property
    def persistent(self) -> bool:
        return self.keeper is not None

    async def save(self) -> bool:
        """Write the jar to disk now; False when it is not kept, not open, or could not be read."""
        if self.keeper is None or self.context is None:
            return False
        return await self.keeper.save(self.context)

    async def save_before_commit(self) -> None:
        """What is about to be committed was done in this jar, whatever happens to the server next."""
        if self.keeper is not None and self.context is not None:
            await self.keeper.save(self.context, COMMIT_SAVE_S)


@dataclass(frozen=True, slots=True)
class Resting:
    """A kept sandbox that is not open here; `held` says that another server has it."""

    state: KeptState
    held: bool


@dataclass(frozen=True, slots=True)
class Removed:
    """What a deletion took from the disk."""

    state: bool
    downloads: int


def lost_browser() -> Unavailable:
    return Unavailable("tab.lost", "The browser ended while the call ran.", "Try again.", retry_after_ms=500)


def limit_reached(limit: int = MAX_SANDBOXES, *, yours: bool = False) -> Precondition:
    return Precondition(
        "sandbox.limit_reached",
        f"{limit} sandboxes {'are yours' if yours else 'exist'}, which is the limit.",
    )


def deleted_meanwhile(sandbox_id: str) -> InvalidParams:
    return InvalidParams("sandbox.unknown", f"Sandbox {sandbox_id} was just deleted.", "Use another sandbox.")


def unknown_zone(zone: str | None) -> InvalidParams:
    return InvalidParams("invalid_params", f'timezone: the browser does not know "{zone}".', "Give an IANA name.")


def in_other_hands(sandbox_id: str, other: HeldBy) -> ClaimMismatch:
    who = "another Nova server" if other.pid is None else f"another Nova server (process {other.pid})"
    return ClaimMismatch(
        "claim.owner_mismatch",
        f"Sandbox {sandbox_id} is in use by {who}.",
        "Use another sandbox, or stop the client that runs that server.",
        retry_after_ms=60_000,
    )


def held_elsewhere(sandbox_id: str, other: HeldBy) -> str:
    who = "another Nova server" if other.pid is None else f"another Nova server (process {other.pid})"
    return f"The kept sandbox with its logins is in use by {who}; sandbox {sandbox_id} is empty and will not be kept."


def unreadable_now(sandbox_id: str) -> str:
    return (
        f"The kept sandbox with its logins can't be read at the moment; sandbox {sandbox_id} is empty and will not "
        "be kept. The file stays as it is: see the server's log, then start Nova again."
    )


def not_restored(sandbox_id: str) -> str:
    return (
        f"The browser did not take the kept logins of sandbox {sandbox_id}: it is empty and is not saved meanwhile. "
        "Their file stays as it is; the next browser is given it again."
    )
