"""Losing the browser with every page in it: why, which tabs went with it, and what an agent reads; pure."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from nova_mcp.core.values import Json
from nova_mcp.errors import Unavailable

LossCause: TypeAlias = Literal["browser_ended", "driver_ended", "no_answer", "node_lost", "idle", "memory"]

TABS_NAMED: Final = 10
URL_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Loss:
    """How the browser was lost; `silent_s` is how long it had not answered."""

    cause: LossCause
    silent_s: float = 0

    def describe(self) -> str:
        match self.cause:
            case "browser_ended":
                return "The browser ended."
            case "driver_ended":
                return "The process that drives the browser ended, and the browser with it."
            case "no_answer":
                return f"The browser did not answer for {self.silent_s:g} s, so it was ended."
            case "memory":
                return "Pages filled the memory of the process that drives the browser, so both were ended."
            case "idle":
                return "The browser was closed because nothing needed it."
            case "node_lost":
                return "The remote browser is gone, and with it every page in it."

    def error(self, tabs: tuple[str, ...]) -> Unavailable:
        """What a call on one of the lost tabs is answered; `tabs` are those of its principal."""
        told = f"{self.describe()} {name_tabs(tabs)}".rstrip()
        details: dict[str, Json] | None = {"lostTabs": list(tabs[:TABS_NAMED])} if tabs else None
        if self.cause == "node_lost":
            hint = "Once it runs again, nova.reload brings a tab back; kept sandboxes come back with their logins."
            return Unavailable("sandbox.node_lost", told, hint, retry_after_ms=5000, details=details)
        hint = "A new browser starts by itself: call nova.reload with recover:true on each tab that is still needed."
        return Unavailable("tab.lost", told, hint, retry_after_ms=500, details=details)

    def notice(self, tabs: tuple[str, ...]) -> str:
        """What is said beside an answer that was given by the next browser."""
        return f"{self.describe()} A new one was started. {name_tabs(tabs)}"


def name_tabs(tabs: tuple[str, ...]) -> str:
    """The lost tabs as a sentence; nothing when there are none."""
    if not tabs:
        return ""
    more = f" and {len(tabs) - TABS_NAMED} more" if len(tabs) > TABS_NAMED else ""
    return f"Lost with it: {', '.join(tabs[:TABS_NAMED])}{more}."


def flooded(url: str, why: str) -> Unavailable:
    """One page was closed for the sake of all others."""
    return Unavailable(
        "tab.lost",
        f'The page at "{url[:URL_CHARS]}" was closed: {why}.',
        "Open another page in this tab; the same one is likely to do it again.",
    )
