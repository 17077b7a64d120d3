"""The registry of tabs: which id means which page, for whom."""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import anyio
from playwright.async_api import Error, Page

from nova_mcp.browser.observe.host_window import DownloadSeen
from nova_mcp.browser.perceive.perception import Perception
from nova_mcp.browser.process.browser_loss import Loss, flooded
from nova_mcp.browser.read.snapshots import SnapshotShelf
from nova_mcp.browser.state.sandbox import MAX_TABS, Sandbox, deleted_meanwhile
from nova_mcp.browser.state.sandboxes import Sandboxes
from nova_mcp.browser.targets import active_tab
from nova_mcp.browser.targets.page_closing import close_page
from nova_mcp.browser.targets.page_parts import PageParts, answers, closed_unless_kept
from nova_mcp.browser.targets.refusals import (
    no_active_tab,
    none_inside,
    several_claims,
    several_connections,
    too_many_tabs,
    unknown_sandbox,
    unknown_tab,
)
from nova_mcp.browser.targets.tab import BLANK, POPUPS_KEPT, Tab
from nova_mcp.browser.targets.tab_claims import ClaimedTarget, TabClaims
from nova_mcp.core.clock import Ports
from nova_mcp.core.hosts import under
from nova_mcp.core.leases import IMPLICIT_LEASE_MS, ClaimEnd, Lease, Place, is_live
from nova_mcp.core.urls import cut_address, page_host
from nova_mcp.core.values import Json, Owner
from nova_mcp.errors import InvalidParams, NovaError, Precondition
from nova_mcp.evidence.model import Caller
from nova_mcp.evidence.page_sights import PageLife
from nova_mcp.evidence.targets.journal import EndReason, LastSeen, TargetJournal, TargetOpened

__all__ = ["ACTIVE", "SANDBOX_ID", "PageParts", "Tab", "TabQuery", "Targets"]

log = logging.getLogger(__name__)

ACTIVE = "active"
MAX_TABS_PER_SANDBOX = 50
BORN_AT_ONCE = 8
STORM_RELOAD_MS = 4000
SANDBOX_ID = re.compile(r"[A-Z]{1,6}")


@dataclass(frozen=True, slots=True)
class TabQuery:
    """Which tabs a caller wants listed."""

    active_only: bool = False
    sandbox_id: str | None = None
    domain: str | None = None
    mine: bool = False


ALL_TABS = TabQuery()


@dataclass(frozen=True, eq=False, slots=True)
class Seat:
    """A place kept for a tab that is still being opened, so that the limits hold meanwhile."""

    sandbox_id: str
    opener: str | None = None
    principal: str = ""


class Targets:
    """Every tab of this server. Each owner has a current tab of its own; no lock spans two tabs."""

    def __init__(
        self, sandboxes: Sandboxes, journal: TargetJournal, ports: Ports, parts: PageParts, claims: TabClaims
    ) -> None:
        self.sandboxes = sandboxes
        self.claims = claims
        self._journal = journal
        self._ports = ports
        self._parts = parts
        self._tabs: dict[str, Tab] = {}
        self._active: dict[Owner, str] = {}
        self._seats: set[Seat] = set()
        self._births = anyio.Semaphore(BORN_AT_ONCE)
        self._moved: dict[str, str] = {}
        self._turns: dict[Owner, active_tab.Turns] = {}
        self._snapshots = SnapshotShelf()
        # The last loss of a browser, by the principals that have not been told yet.
        self._untold: dict[str, tuple[Loss, tuple[str, ...]]] = {}

    def __iter__(self) -> Iterator[Tab]:
        return iter(tuple(self._tabs.values()))

    def __len__(self) -> int:
        return len(self._tabs)

    def lives(self) -> dict[str, PageLife]:
        """What the tabs of this server remember of their pages."""
        return {tab.target_id: tab.signs.told() for tab in self._tabs.values()}

    @property
    def opening(self) -> bool:
        """Whether a tab is on its way that is not among the others yet."""
        return bool(self._seats)

    # -- finding

    async def resolve(self, caller: Caller, target_id: str = ACTIVE, connection: str | None = None) -> Tab:
        """The one tab an id means to this caller."""
        if target_id == ACTIVE:
            tab = self._resolve_active(caller, connection)
        elif SANDBOX_ID.fullmatch(target_id):
            tab = await self._latest_in(caller, target_id)
        else:
            found = self._tabs.get(target_id)
            if found is None or found.principal != caller.principal:
                raise await self.unknown_tab(caller, target_id)
            tab = found
        await tab.replaced()
        tab.touch()
        return tab

    async def place(self, caller: Caller, target_id: str, tab: Tab | None) -> tuple[Place, list[Tab]]:
        """What a claim on a target would be on and the tabs it covers; a sandbox id means the sandbox itself."""
        if tab is not None:
            return Place(tab.target_id, tab.sandbox_id), [tab]
        sandbox = await self.require_sandbox(caller, target_id)
        return Place(sandbox.sandbox_id, sandbox.sandbox_id), self._inside(sandbox.sandbox_id)

    def _inside(self, sandbox_id: str) -> list[Tab]:
        return [tab for tab in self._tabs.values() if tab.sandbox_id == sandbox_id]

    def active_of(self, owner: Owner) -> Tab | None:
        """The owner's current tab, if it has one."""
        return self._tabs.get(self._active.get(owner, ""))

    def find(self, caller: Caller, target_id: str) -> Tab | None:
        """A tab by its id without an error; for calls to which an absent tab is an answer."""
        tab = self.active_of(caller.owner) if target_id == ACTIVE else self._tabs.get(target_id)
        return tab if tab is not None and tab.principal == caller.principal else None

    def _resolve_active(self, caller: Caller, connection: str | None) -> Tab:
        claims = self.claims.held_by(caller.owner)
        if len(claims) > 1:
            raise several_claims(len(claims), self._covered(claims))
        if connection is not None and (used := self._used_in_turn(caller.owner, connection)):
            raise several_connections(caller.agent_id, used)
        tab = self.active_of(caller.owner)
        if tab is None:
            raise no_active_tab([tab for tab in self._tabs.values() if tab.principal == caller.principal])
        return tab

    def used(self, owner: Owner, connection: str | None, tab: Tab) -> None:
        """A call worked in a tab; connections that can't be told apart are left out."""
        if connection is not None and self._tabs.get(tab.target_id) is tab:
            use = active_tab.Use(connection, tab.target_id, self._ports.clock.now_ms())
            self._turns[owner] = active_tab.used(self._turns.get(owner, active_tab.Turns()), use)

    def _used_in_turn(self, owner: Owner, connection: str) -> list[Tab]:
        history = self._turns.get(owner, active_tab.Turns())
        tabs = active_tab.in_turn(history, connection, self._ports.clock.now_ms())
        return [self._tabs[target_id] for target_id in tabs if target_id in self._tabs]

    def _covered(self, claims: Sequence[ClaimedTarget]) -> list[Tab]:
        keys = {claim.target_id for claim in claims}
        return [tab for tab in self._tabs.values() if tab.target_id in keys or tab.sandbox_id in keys]

    async def _latest_in(self, caller: Caller, sandbox_id: str) -> Tab:
        await self.require_sandbox(caller, sandbox_id)
        inside = self._inside(sandbox_id)
        mine = [tab for tab in inside if tab.owner == caller.owner]
        if not mine:
            raise none_inside(sandbox_id, inside, await self._last_seen(caller, sandbox_id, None))
        return max(mine, key=lambda tab: (tab.last_activity_ms, int(tab.target_id.removeprefix("tab_"))))

    async def require_sandbox(self, caller: Caller, sandbox_id: str) -> Sandbox:
        sandbox = await self.sandboxes.find(caller.owner, sandbox_id)
        if sandbox is None:
            seen = await self._journal.last_seen(caller.principal, sandbox_id)
            raise unknown_sandbox(sandbox_id, await self._last_seen(caller, sandbox_id, seen))
        return sandbox

    async def unknown_tab(self, caller: Caller, target_id: str) -> InvalidParams:
        seen = await self._journal.last_seen(caller.principal, target_id)
        return unknown_tab(target_id, await self._last_seen(caller, target_id, seen))

    async def _last_seen(self, caller: Caller, target_id: str, seen: LastSeen | None) -> dict[str, Json]:
        """What is known of a target that is gone, and to the owner of its last claim how that one ended."""
        told: dict[str, Json] = {} if seen is None else seen.describe()
        ended = await self.claims.last_ended(caller.owner, Place(target_id, target_id))
        if ended is not None:
            told["claim"] = ended.describe()
        return {"lastSeen": told} if told else {}

    def list_tabs(self, caller: Caller, query: TabQuery = ALL_TABS) -> list[Tab]:
        """The principal's tabs that fit the query, oldest first."""
        current = self.active_of(caller.owner)
        return [
            tab
            for tab in self._tabs.values()
            if tab.principal == caller.principal
            and (not query.active_only or tab is current)
            and (query.sandbox_id is None or tab.sandbox_id == query.sandbox_id)
            and (not query.mine or tab.owner == caller.owner or self._holder(tab) == caller.owner)
            and (query.domain is None or under(page_host(tab.url) or "", query.domain.lower()))
        ]

    def _holder(self, tab: Tab) -> Owner | None:
        lease = self.claims.lease_on(tab)
        return lease.owner if lease is not None and is_live(lease, self._ports.clock.now_ms()) else None

    # -- opening and closing

    async def open_tab(self, caller: Caller, sandbox_id: str | None = None, *, activate: bool = True) -> Tab:
        """A new empty tab with an implicit lease; in the caller's current sandbox unless one is named."""
        sandbox = await self._sandbox_for(caller, sandbox_id)
        self.claims.require_free(caller.owner, sandbox.sandbox_id)
        seat = self._reserve(sandbox.sandbox_id, caller.principal)
        try:
            # Fifty pages born at once would each look stalled to the host that waits for them.
            async with self._births:
                page = await self.sandboxes.new_page(sandbox)
                async with closed_unless_kept(page):
                    tab = await self._adopt(page, seat, caller.owner, opener=None)
        finally:
            self._seats.discard(seat)
        if sandbox.deleted:
            await self.close_tab(tab, "sandbox_deleted")
            raise deleted_meanwhile(sandbox.sandbox_id)
        if (lost := self._lost_notice(caller.principal)) is not None:
            tab.notices.append(lost)
        if sandbox.notice is not None:
            tab.notices.append(sandbox.notice)
            sandbox.notice = None
        if activate:
            self._active[caller.owner] = tab.target_id
        return tab

    async def _sandbox_for(self, caller: Caller, sandbox_id: str | None) -> Sandbox:
        if sandbox_id is not None:
            return await self.require_sandbox(caller, sandbox_id)
        current = self.active_of(caller.owner)
        if current is not None:
            return self.sandboxes.by_id(current.sandbox_id)
        return await self.sandboxes.first(caller.owner)

    def _reserve(self, sandbox_id: str, principal: str, opener: str | None = None) -> Seat:
        taken = [tab.sandbox_id for tab in self._tabs.values()] + [seat.sandbox_id for seat in self._seats]
        if taken.count(sandbox_id) >= MAX_TABS_PER_SANDBOX:
            raise too_many_tabs(MAX_TABS_PER_SANDBOX)
        if len(taken) >= MAX_TABS:
            raise too_many_tabs(MAX_TABS)
        share = self.sandboxes.shares.tabs
        owners = [tab.principal for tab in self._tabs.values()] + [seat.principal for seat in self._seats]
        if owners.count(principal) >= share:
            raise too_many_tabs(share, yours=True)
        seat = Seat(sandbox_id, opener, principal)
        self._seats.add(seat)
        return seat

    async def _adopt(self, page: Page, seat: Seat, owner: Owner, opener: Tab | None) -> Tab:
        sandbox_id = seat.sandbox_id
        # Asked now: its opener may write into it and be gone before anybody has looked at it.
        reached = opener is not None and opener.scripted_epoch == opener.page_epoch
        opened_at = BLANK if opener is None else opener.site_url
        number = await self._journal.next_number("tab")
        now = self._ports.clock.now_ms()
        tab = Tab(f"tab_{number}", sandbox_id, owner, self, self._ports.clock)
        tab.perception = Perception(self._snapshots)
        tab.lease = Lease(owner, now + IMPLICIT_LEASE_MS)
        if opener is not None:
            tab.opened_by(opener, opened_at, reached=reached)
        try:
            await self._parts.equip(tab, page)
        except BaseException:
            tab.leave_kin()
            raise
        tab.url = cut_address(page.url) or BLANK
        self._tabs[tab.target_id] = tab
        # From here on the tab itself is counted, never both.
        self._seats.discard(seat)
        self.claims.opened(tab)
        await self._journal.opened(TargetOpened("tab", tab.target_id, sandbox_id, *owner, tab.url, now))
        return tab

    async def close_tab(self, tab: Tab, reason: EndReason = "closed") -> bool:
        """Close without asking the page; False when it was closed before."""
        if self._tabs.get(tab.target_id) is not tab:
            return False
        tab.closing = True
        self._drop(tab, "sandbox_deleted" if reason == "sandbox_deleted" else "tab_closed")
        tab.channel.end("closed")
        await close_page(tab.page)
        await self._ended(tab, reason)
        return True

    def _drop(self, tab: Tab, reason: ClaimEnd = "tab_closed") -> None:
        self._tabs.pop(tab.target_id, None)
        tab.perception.close()
        tab.leave_kin()
        self.claims.gone(tab.target_id, reason)
        self._active = {owner: target for owner, target in self._active.items() if target != tab.target_id}
        self._turns = {owner: active_tab.closed(one, tab.target_id) for owner, one in self._turns.items()}

    async def _ended(self, tab: Tab, reason: EndReason) -> None:
        now = self._ports.clock.now_ms()
        if (url := self._moved.pop(tab.target_id, None)) is not None:
            await self._journal.moved(tab.target_id, url, now)
        await self._journal.ended(tab.target_id, reason, now, tab.signs.told())

    def activate(self, caller: Caller, tab: Tab) -> str | None:
        """Make a tab the caller's current one; returns the previous."""
        previous = self.active_of(caller.owner)
        self._active[caller.owner] = tab.target_id
        return None if previous is None else previous.target_id

    # -- recovery

    async def recover(self, tab: Tab) -> None:
        """Put a fresh page behind a tab whose own can't be used any more; nothing is loaded into it yet."""
        old = tab.page
        page = await self.sandboxes.new_page(self.sandboxes.by_id(tab.sandbox_id))
        async with closed_unless_kept(page):
            await self._parts.equip(tab, page)
        tab.http_status = None
        tab.title = ""
        await close_page(old)

    async def flush_moves(self) -> None:
        """Write the newest address of each tab that moved; pages may move faster than a store should write."""
        now = self._ports.clock.now_ms()
        for target_id, url in tuple(self._moved.items()):
            await self._journal.moved(target_id, url, now)
            # Only what was written; the tab may have moved on while it was.
            if self._moved.get(target_id) == url:
                del self._moved[target_id]

    def browser_gone(self, loss: Loss) -> None:
        """The browser ended: tabs keep their ids and wait to be recovered."""
        lost = [tab for tab in self._tabs.values() if tab.channel.lost_with is None]
        lost.sort(key=lambda tab: tab.last_activity_ms, reverse=True)
        for tab in lost:
            # Only to their own principal: nobody learns how many tabs another one has.
            names = tuple(other.target_id for other in lost if other.principal == tab.principal)
            tab.channel.lost_with = partial(loss.error, names)
            if loss.cause != "idle":
                self._untold[tab.principal] = (loss, names)
            tab.channel.end("lost")

    def _lost_notice(self, principal: str) -> str | None:
        """Said once beside the answer that opens a tab in the next browser: which tabs the last one took with it."""
        if (untold := self._untold.pop(principal, None)) is None:
            return None
        loss, names = untold
        still = tuple(name for name in names if (tab := self._tabs.get(name)) and tab.channel.state != "ready")
        return loss.notice(still) if still else None

    # -- what tabs report

    async def popup_opened(self, opener: Tab, page: Page, *, keep: bool) -> str | None:
        if not keep or (not opener.watched and self._popups_of(opener) >= POPUPS_KEPT):
            await close_page(page)
            return None
        try:
            seat = self._reserve(opener.sandbox_id, opener.principal, opener.target_id)
        except Precondition:
            await close_page(page)
            return None
        try:
            tab = await self._adopt(page, seat, self._holder(opener) or opener.owner, opener)
        except (Error, NovaError):
            # It closed itself before it could be looked at.
            await close_page(page)
            return None
        except Exception:
            # A driver's event has no caller to tell, and a page without a journal row must not live.
            log.exception("a popup could not be registered")
            await close_page(page)
            return None
        finally:
            self._seats.discard(seat)
        return tab.target_id

    def _popups_of(self, opener: Tab) -> int:
        """A page left to itself must not fill the sandbox, however slowly it goes about it."""
        there = [tab.opener_target_id for tab in self._tabs.values()] + [seat.opener for seat in self._seats]
        return there.count(opener.target_id)

    async def storm(self, tab: Tab) -> None:
        """Replace a page that opens dialog after dialog; one that does so while loading, or again, is not reloaded."""
        tab.replacing = done = anyio.Event()
        tab.channel.end("closed", storm=True)
        tab.storms += 1
        url, again = tab.url, tab.storms == 1 and not tab.loading
        try:
            await self.recover(tab)
            tab.url = BLANK
            if again and url != BLANK:
                await tab.page.goto(url, wait_until="commit", timeout=STORM_RELOAD_MS)
        except (Error, NovaError):
            return
        finally:
            if tab.replacing is done:
                tab.replacing = None
            done.set()

    async def close_flood(self, tab: Tab, why: str) -> None:
        """Put an empty page in the place of one that fills driver and server; it is not loaded again."""
        tab.replacing = done = anyio.Event()
        error = flooded(tab.url, why)
        tab.channel.lost_with = lambda: error
        tab.channel.end("closed", storm=True)
        try:
            await self.recover(tab)
            tab.url = BLANK
            tab.notices.append(f"{error.message} The tab is empty now.")
        except (Error, NovaError):
            return
        finally:
            if tab.replacing is done:
                tab.replacing = None
            done.set()

    async def page_closed(self, tab: Tab, page: Page) -> None:
        if page is not tab.page or tab.closing or self._tabs.get(tab.target_id) is not tab or tab.channel.stormed:
            return
        sandbox = self.sandboxes.get(tab.principal, tab.sandbox_id)
        # The same event is sent when the whole browser dies; only a living one can still answer.
        if sandbox is None or sandbox.context is None or not await answers(sandbox):
            return
        if page is tab.page and self._tabs.get(tab.target_id) is tab:
            self._drop(tab)
            await self._ended(tab, "closed")

    def download_began(self, tab: Tab, url: str, suggested: str, content_type: str) -> DownloadSeen:
        sandbox = self.sandboxes.get(tab.principal, tab.sandbox_id)
        return self._parts.downloads.claimed(sandbox.sandbox_ref if sandbox else "", url, suggested, content_type)

    def committed(self, tab: Tab, url: str) -> None:
        self._moved[tab.target_id] = url
