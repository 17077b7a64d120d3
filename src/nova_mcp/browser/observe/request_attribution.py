"""Which requests after a press are the action's doing, and which of them will ever tell how they ended."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from nova_mcp.browser.observe.host_window import SAFE, RequestSeen
from nova_mcp.core.hosts import site
from nova_mcp.core.urls import page_host
from nova_mcp.verification.model import SentRequest

# Sent on the way out; no page ever sees their answer.
_UNANSWERED: Final = frozenset({"ping", "beacon"})


@dataclass(frozen=True, slots=True)
class Backdrop:
    """What the page was doing by itself when the action came; `recent_paths` were fetched in the seconds before."""

    url: str = ""
    recent_paths: frozenset[str] = frozenset()


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
    """The requests since the press without those that the page keeps sending anyway.

    A path that the page polls may carry the action too, so nothing that changes the other side is left out, except
    what the server had turned down before the press already.
    """
    before = requests[: pressed.requests]
    earlier = {(seen.method, seen.path) for seen in before if seen.method == "GET"}
    failing = {(seen.method, seen.path) for seen in before if (seen.status or 0) >= 400}
    since = [
        seen
        for seen in requests[pressed.requests :]
        if seen.resource_type == "document"
        or ((seen.method, seen.path) not in failing and not is_habit(seen, earlier, backdrop))
    ]
    # Where the action speaks to its own site, what goes to others beside that is for counting visitors.
    own = any(seen.method not in SAFE and same_site(seen.url, backdrop.url) for seen in since)
    return tuple(_sent(seen, pressed, backdrop, foreign_counts=not own) for seen in since)


def is_habit(seen: RequestSeen, earlier: Collection[tuple[str, str]], backdrop: Backdrop) -> bool:
    """Whether the page sends this anyway, action or not."""
    return (seen.method, seen.path) in earlier or (seen.method == "GET" and seen.path in backdrop.recent_paths)


def _sent(seen: RequestSeen, pressed: Pressed, backdrop: Backdrop, *, foreign_counts: bool = False) -> SentRequest:
    # A load that turns into a file is given up by the browser; that is how downloads look.
    saved = seen.resource_type == "document" and seen.url in pressed.saved_urls
    return SentRequest(
        method=seen.method,
        url=seen.url,
        status=200 if saved and seen.status is None else seen.status,
        failed=seen.failed and not saved,
        reports=_reports(seen, pressed, backdrop, foreign_counts=foreign_counts),
        leads=seen.main_document and not saved,
    )


def _reports(seen: RequestSeen, pressed: Pressed, backdrop: Backdrop, *, foreign_counts: bool) -> bool:
    if seen.resource_type in _UNANSWERED:
        return False
    if seen.main_document:
        return True
    if not foreign_counts and not same_site(seen.url, backdrop.url):
        return False
    orphaned = pressed.committed_ms is not None and seen.started_ms < pressed.committed_ms
    return not (orphaned and seen.pending and seen.resource_type != "document")


def same_site(left: str, right: str) -> bool:
    one, other = page_host(left), page_host(right)
    return one is not None and other is not None and (one == other or site(one) == site(other))
