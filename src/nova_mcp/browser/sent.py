"""Which requests after a press are the action's doing, and which of them will ever tell how they ended."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from nova_mcp.browser.host_window import RequestSeen
from nova_mcp.hosts import site
from nova_mcp.urls import page_host
from nova_mcp.verification.model import SentRequest

# Sent on the way out; no page ever sees their answer.
_UNANSWERED: Final = frozenset({"ping", "beacon"})


@dataclass(frozen=True, slots=True)
class Backdrop:
    """What the page was doing by itself when the action came.

    `recent_paths` were fetched in the last seconds before it; `action_paths` are those that earlier actions on the tab
    caused, and so no habit of the page.
    """

    url: str = ""
    recent_paths: frozenset[str] = frozenset()
    action_paths: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pressed:
    """How much of the window's record lies before the press, and when the newest document after it came."""

    requests: int
    committed_ms: float | None = None
    saved_urls: Collection[str] = ()


def since_press(requests: Sequence[RequestSeen], pressed: Pressed, backdrop: Backdrop) -> list[SentRequest]:
    """Every request since the press, whoever caused it."""
    return [_sent(seen, pressed, backdrop) for seen in requests[pressed.requests :]]


def sent_requests(requests: Sequence[RequestSeen], pressed: Pressed, backdrop: Backdrop) -> tuple[SentRequest, ...]:
    """The requests since the press without those that the page keeps sending anyway."""
    earlier = {(seen.method, seen.path) for seen in requests[: pressed.requests]}
    return tuple(
        _sent(seen, pressed, backdrop)
        for seen in requests[pressed.requests :]
        if seen.resource_type == "document" or not _habit(seen, earlier, backdrop)
    )


def _habit(seen: RequestSeen, earlier: Collection[tuple[str, str]], backdrop: Backdrop) -> bool:
    if (seen.method, seen.path) in earlier:
        return True
    if seen.path not in backdrop.recent_paths:
        return False
    # The page names no method for what it fetched, so an earlier action's own sending must not pass for a habit.
    return seen.method == "GET" or seen.path not in backdrop.action_paths


def _sent(seen: RequestSeen, pressed: Pressed, backdrop: Backdrop) -> SentRequest:
    # A load that turns into a file is given up by the browser; that is how downloads look.
    saved = seen.resource_type == "document" and seen.url in pressed.saved_urls
    return SentRequest(
        method=seen.method,
        url=seen.url,
        status=200 if saved and seen.status is None else seen.status,
        failed=seen.failed and not saved,
        reports=_reports(seen, pressed, backdrop),
    )


def _reports(seen: RequestSeen, pressed: Pressed, backdrop: Backdrop) -> bool:
    if seen.resource_type in _UNANSWERED:
        return False
    if seen.main_document:
        return True
    if not _same_site(seen.url, backdrop.url):
        return False
    orphaned = pressed.committed_ms is not None and seen.started_ms < pressed.committed_ms
    return not (orphaned and seen.pending and seen.resource_type != "document")


def _same_site(left: str, right: str) -> bool:
    one, other = page_host(left), page_host(right)
    return one is not None and other is not None and (one == other or site(one) == site(other))
