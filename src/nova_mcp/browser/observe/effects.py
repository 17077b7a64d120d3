"""Watching what an action does: the page's own observer and the host's events, until both are quiet."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import anyio

from nova_mcp.browser.act.locate import Prepared
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.observe.host_window import HostWindow, RequestSeen
from nova_mcp.browser.observe.request_attribution import Backdrop, is_habit, same_site
from nova_mcp.browser.perceive.rules import (
    QUIET_MS,
    WINDOW_MS,
    ActionRequest,
    DispatchProof,
    Proof,
    Signs,
    dispatch_proof,
    window_left_ms,
)
from nova_mcp.browser.perceive.scan_values import Answer, SeenElement, answer, read_element
from nova_mcp.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

MAX_REQUESTS: Final = 5
_ANSWER_MS: Final = 3000
# A page that waits for its successor answers nothing; waiting longer would only delay the report.
_DEPARTING_MS: Final = 200


@dataclass(frozen=True, slots=True)
class Mark:
    """How much of the host's record lies before the press."""

    at_ms: float
    requests: int
    navigations: int
    tabs: int
    dialogs: int
    downloads: int
    popups: int


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything seen between the press and the end of the window."""

    signs: Signs
    proof: Proof
    dispatch_proof: DispatchProof
    window_ms: int
    since: Mark
    foreign: SeenElement | None = None


def mark(window: HostWindow) -> Mark:
    """Taken right before the press; everything later may be its effect."""
    return Mark(
        at_ms=anyio.current_time() * 1000,
        requests=len(window.requests),
        navigations=len(window.navigations),
        tabs=len(window.new_tabs),
        dialogs=len(window.dialogs),
        downloads=len(window.downloads),
        popups=window.popups_closed,
    )


class Watch:
    """One action's window."""

    def __init__(self, tab: "Tab", window: HostWindow, prepared: Prepared, since: Mark) -> None:
        self._tab = tab
        self._window = window
        self._prepared = prepared
        self._since = since
        self._backdrop = Backdrop(prepared.url, prepared.recent_paths)
        self._pressed_ms = anyio.current_time() * 1000
        self._told: Answer | None = None
        self._told_ms = 0.0
        # Nothing has happened since the page told last.
        self._fresh = False
        self._lost = False
        self._host_changes = window.changes
        self._host_ms: float | None = None

    @staticmethod
    def _now_ms() -> float:
        return anyio.current_time() * 1000

    async def observe(self) -> Observation:
        """Wait until the first sign of an effect has gone quiet, or the window is over."""
        self._note_host(first=True)
        async with anyio.create_task_group() as group:
            group.start_soon(self._hear_page, group.cancel_scope)
            group.start_soon(self._hear_host, group.cancel_scope)
        if not self._lost and not self._fresh:
            await self._ask_page(0)
        return self._observation()

    def at_once(self, told: Answer) -> Observation:
        """What the page has told by now, without waiting for more."""
        self._take(told)
        return self._observation()

    def brought_up_to_date(self, observation: Observation) -> Observation:
        """The same with the answers that have come since: a verdict may have waited for them."""
        return replace(observation, signs=replace(observation.signs, requests=tuple(self._requests())))

    async def _hear_page(self, scope: anyio.CancelScope) -> None:
        """Question after question until the window is over; a page that is gone leaves the waiting to the host."""
        while not self._lost:
            if (left := self._left_ms()) <= 0:
                scope.cancel()
                return
            await self._ask_page(left)

    async def _hear_host(self, scope: anyio.CancelScope) -> None:
        while (left := self._left_ms()) > 0:
            if await self._window.wait_change(left):
                self._fresh = False
                self._note_host(first=False)
        scope.cancel()

    async def _ask_page(self, wait_ms: float) -> None:
        wait = math.ceil(min(wait_ms, WINDOW_MS))
        patience = _DEPARTING_MS if self._tab.channel.departing else _ANSWER_MS
        # A page that was quiet long enough is asked again only because the host is not: it has nothing to hurry for.
        told_ms = None if self._told is None else self._told["quietMs"]
        quiet_ms = WINDOW_MS if told_ms is not None and told_ms >= QUIET_MS else QUIET_MS
        question: dict[str, Any] = {"waitMs": wait, "quietMs": quiet_ms}
        try:
            told = answer(
                await self._tab.channel.ask(
                    "effect", question, frame_id=self._prepared.frame_id, timeout_ms=wait + patience
                )
            )
        except (DocumentChanged, PageScriptError, Unavailable, NotFound):
            self._lost = True
        else:
            self._take(told)

    def _take(self, told: Answer) -> None:
        if told.get("lost"):
            self._lost = True
        else:
            self._told, self._told_ms, self._fresh = told, self._now_ms(), True

    def _note_host(self, *, first: bool) -> None:
        if (first or self._window.changes != self._host_changes) and self._host_channels() | self._strong_requests():
            self._host_ms = self._now_ms()
        self._host_changes = self._window.changes

    def _left_ms(self) -> float:
        now = self._now_ms()
        quiet = [now - self._host_ms] if self._host_ms is not None else []
        if self._told is not None and self._told["quietMs"] is not None:
            quiet.append(self._told["quietMs"] + now - self._told_ms)
        pending = self._window.tabs_coming > 0 or any(one.strong and one.pending for one in self._requests())
        return window_left_ms(now - self._pressed_ms, min(quiet) if quiet else None, pending)

    # -- what the host saw

    def _host_channels(self) -> frozenset[str]:
        window, since = self._window, self._since
        moves = window.navigations[since.navigations :]
        channels = {"url_changed" if move.same_document else "navigation" for move in moves}
        if len(window.new_tabs) > since.tabs:
            channels.add("new_tab")
        if window.popups_closed > since.popups:
            channels.add("popup")
        if len(window.downloads) > since.downloads:
            channels.add("download")
        return frozenset(channels)

    def _strong_requests(self) -> frozenset[str]:
        return frozenset({"request_started"} if any(request.strong for request in self._requests()) else ())

    def _requests(self) -> list[ActionRequest]:
        return [self._request(seen) for seen in self._window.requests[self._since.requests :]]

    def _request(self, seen: RequestSeen) -> ActionRequest:
        earlier = {(r.method, r.path) for r in self._window.requests[: self._since.requests]}
        document = seen.resource_type == "document"
        # A load that turns into a file is given up by the browser; that is how downloads look.
        saved = document and any(download.url == seen.url for download in self._window.downloads)
        return ActionRequest(
            method=seen.method,
            path=seen.path,
            status=200 if saved and seen.status is None else seen.status,
            failed=seen.failed and not saved,
            resource_type=seen.resource_type,
            same_site=document or same_site(seen.url, self._prepared.url),
            seen_before=not document and is_habit(seen, earlier, self._backdrop),
        )

    def _observation(self) -> Observation:
        told = self._told
        host = self._host_channels()
        page = frozenset(told["channels"]) if told is not None else frozenset[str]()
        # A new document swallows the old one's observer; whatever was seen before that still counts.
        signs = Signs(
            page_channels=page,
            host_channels=host,
            requests=tuple(self._requests()),
            new_text=tuple(told["newText"]) if told is not None else (),
            alerts=tuple(told["alerts"]) if told is not None else (),
            observer_lost=self._lost,
        )
        foreign = told.get("foreign") if told is not None else None
        proof = _proof(told)
        dialogs = {f"dialog:{dialog.type}" for dialog in self._window.dialogs[self._since.dialogs :]}
        return Observation(
            signs=signs,
            proof=proof,
            dispatch_proof=dispatch_proof(proof, host | dialogs),
            window_ms=round(self._now_ms() - self._pressed_ms),
            since=self._since,
            foreign=None if foreign is None else read_element(foreign, self._prepared.frame_id or ""),
        )


def _proof(told: Answer | None) -> Proof:
    raw = told.get("proof") if told is not None else None
    if raw is None:
        return Proof()
    return Proof(tuple(raw["reached"]), tuple(raw["stopped"]), raw["standing"], raw["alive"], readable=True)
