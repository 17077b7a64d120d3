"""Who is signed in: random cookies kept in memory only, and the tickets and guesses that were spent on getting one."""

import secrets
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Literal

from nova_mcp.core.clock import Clock

IDLE_MS: Final = 12 * 3_600_000
# However much it is used: a cookie that another port of this machine has seen must not be good for ever.
LONGEST_MS: Final = 7 * 24 * 3_600_000
KEPT: Final = 64
NOTICES: Final = 8
WRONG_PER_MINUTE: Final = 20
MINUTE_MS: Final = 60_000

Tone = Literal["good", "bad", "plain"]


@dataclass(frozen=True, slots=True)
class Notice:
    """What an action came to, told on the page that follows it."""

    text: str
    tone: Tone = "good"


@dataclass(slots=True)
class Session:
    """One signed-in browser. `csrf` stands in every form of its pages and in no other's."""

    principal: str
    csrf: str
    seen_ms: int
    opened_ms: int
    notices: OrderedDict[str, Notice] = field(default_factory=OrderedDict)

    def tell(self, notice: Notice) -> str:
        """Keep a notice; its key goes into the address of the next page, so that showing it changes nothing."""
        key = secrets.token_hex(6)
        self.notices[key] = notice
        while len(self.notices) > NOTICES:
            self.notices.popitem(last=False)
        return key


class Sessions:
    """Signed-in browsers; a restart of the server signs everybody out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: OrderedDict[bytes, Session] = OrderedDict()
        self._spent: dict[str, int] = {}
        self._wrong: deque[int] = deque()

    def open(self, principal: str) -> str:
        """A new session; returns the value of its cookie."""
        cookie = secrets.token_urlsafe(32)
        now = self._clock.now_ms()
        self._open[_key(cookie)] = Session(principal, secrets.token_urlsafe(24), now, now)
        while len(self._open) > KEPT:
            self._open.popitem(last=False)
        return cookie

    def find(self, cookie: str | None) -> Session | None:
        """The session of a cookie, unless it lay idle or lasted for too long; looking at a page keeps it alive."""
        if not cookie:
            return None
        key, now = _key(cookie), self._clock.now_ms()
        session = self._open.get(key)
        if session is None:
            return None
        if now - session.seen_ms > IDLE_MS or now - session.opened_ms > LONGEST_MS:
            del self._open[key]
            return None
        session.seen_ms = now
        self._open.move_to_end(key)
        return session

    def close(self, cookie: str | None) -> None:
        if cookie:
            self._open.pop(_key(cookie), None)

    def spend(self, nonce: str, until_ms: int) -> bool:
        """Take a ticket; False when it was taken before."""
        now = self._clock.now_ms()
        self._spent = {known: until for known, until in self._spent.items() if until >= now}
        if nonce in self._spent:
            return False
        self._spent[nonce] = until_ms
        return True

    def wrong(self) -> None:
        """A sign-in that failed."""
        self._wrong.append(self._clock.now_ms())

    def patience(self) -> bool:
        """Whether another attempt is listened to: guessing is slowed down for everybody together."""
        since = self._clock.now_ms() - MINUTE_MS
        while self._wrong and self._wrong[0] <= since:
            self._wrong.popleft()
        return len(self._wrong) < WRONG_PER_MINUTE


def _key(cookie: str) -> bytes:
    # Looked up by hash: how long a lookup takes then says nothing about cookies that exist.
    return sha256(cookie.encode("utf-8", "replace")).digest()
