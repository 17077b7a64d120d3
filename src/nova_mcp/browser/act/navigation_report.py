"""How a navigation ended, and the pure rules that decide it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nova_mcp.browser.observe.host_window import DialogSeen, DownloadSeen
from nova_mcp.core.values import Json

WaitUntil = Literal["commit", "domcontentloaded", "load", "settled"]
LoadState = Literal["none", "commit", "domcontentloaded", "load", "settled"]
NavigationStatus = Literal["ok", "partial", "failed", "blocked"]

MAX_REDIRECTS_LISTED = 10
_NET_ERROR = re.compile(r"net::(ERR_[A-Z0-9_]+)")
# Response headers by which the large protection services mark a page that is a check, not the site.
_CHALLENGE_HEADERS = {"cf-mitigated": ("challenge",), "x-amzn-waf-action": ("challenge", "captcha")}


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How far to wait and whether to leave a page that asks to stay."""

    wait_until: WaitUntil = "domcontentloaded"
    timeout_ms: int = 15_000
    force: bool = False


@dataclass(frozen=True, slots=True)
class NavigationReport:
    """What a navigation did; `verified` is true only when the page arrived with a status below 400."""

    status: NavigationStatus
    reason_code: str | None
    requested_url: str
    url: str
    title: str
    http_status: int | None
    load_state: LoadState
    page_epoch: int
    verified: bool
    message: str = ""
    hint: str = ""
    net_error: str | None = None
    redirects: tuple[str, ...] = ()
    dispatched: bool = True
    recovered: bool = False
    retry_after_ms: int | None = None
    dialogs: tuple[DialogSeen, ...] = ()
    downloads: tuple[DownloadSeen, ...] = ()
    new_tabs: tuple[str, ...] = ()
    popups_closed: int = 0
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ending:
    """A verdict with its words."""

    status: NavigationStatus
    reason_code: str | None = None
    message: str = ""
    hint: str = ""
    retry_after_ms: int | None = None


def net_error_of(message: str) -> str | None:
    """Chromium's own name for what went wrong, if the driver's text carries one."""
    found = _NET_ERROR.search(message)
    return found.group(1) if found else None


def is_challenge(headers: Mapping[str, str]) -> bool:
    return any(headers.get(name, "").lower() in values for name, values in _CHALLENGE_HEADERS.items())


def judge_arrival(http_status: int | None, *, challenge: bool, waited: bool, timeout_ms: int) -> Ending:
    """The verdict on a page that committed."""
    if challenge:
        return Ending(
            "partial",
            "navigation.challenge",
            "The site answered with a check for bots instead of its page.",
            "A person has to pass the check; do not retry automatically.",
        )
    if http_status is not None and http_status >= 400:
        return Ending(
            "partial",
            "navigation.http_error",
            f"The server answered with HTTP status {http_status}.",
            "Check the address; nova.perceive shows what the server sent.",
        )
    if not waited:
        return Ending(
            "partial",
            "navigation.wait_for_load_timeout",
            f"The page arrived but was not done loading after {timeout_ms} ms.",
            "Read what is there with nova.perceive, or wait for an element.",
        )
    return Ending("ok")


def judge_failure(net_error: str | None, http_status: int | None, *, downloaded: bool) -> Ending:
    """The verdict on a navigation that brought no page."""
    if downloaded:
        return Ending(
            "partial",
            "navigation.became_download",
            "The address delivered a file, not a page; the previous page is still open.",
            "See downloads in this answer.",
        )
    if net_error == "ERR_HTTP_RESPONSE_CODE_FAILURE":
        return Ending(
            "partial",
            "navigation.http_error",
            f"The server answered with HTTP status {http_status} and no content.",
            "Check the address.",
        )
    if http_status == 204:
        return Ending(
            "failed",
            "navigation.failed",
            "The server answered with HTTP status 204, which keeps the previous page open.",
            "Nothing to wait for; go on with the page that is open.",
        )
    return Ending(
        "failed",
        "navigation.failed",
        f"The page could not be loaded: {net_error or 'the browser gave no reason'}.",
        "Check the address and the network; the tab now shows an empty page."
        if net_error != "ERR_ABORTED"
        else "The previous page is still open; look at it with nova.perceive.",
        retry_after_ms=1000,
    )


def timed_out(timeout_ms: int) -> Ending:
    return Ending(
        "failed",
        "navigation.timeout",
        f"The server sent no page within {timeout_ms} ms; the previous page is still open.",
        "Try again with a larger timeoutMs.",
        retry_after_ms=2000,
    )


STAYED = Ending(
    "blocked",
    "navigation.beforeunload_blocked",
    "The page asks to stay because something on it is unsaved.",
    "Save or discard it first, or repeat the call with force:true to leave.",
)
