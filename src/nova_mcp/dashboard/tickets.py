"""Sign-in links: who holds the operator's token can make one that opens the dashboard once, within a minute; pure."""

import hmac
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal

LIFE_MS: Final = 60_000
# Both sides run on one machine, but a clock may be set between two of its readings.
AHEAD_MS: Final = 5_000
_SHAPE: Final = re.compile(r"([0-9]{1,15})\.([0-9a-f]{16,64})\.([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Ticket:
    """A genuine ticket that is still good; whoever takes it remembers the nonce until then."""

    nonce: str
    issued_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class NoTicket:
    """Why a link opens nothing."""

    why: Literal["forged", "expired"]


def issue(secret: str, endpoint: str, now_ms: int, nonce: str) -> str:
    """A ticket for one server: the endpoint is part of what is signed."""
    return f"{now_ms}.{nonce}.{_signature(secret, endpoint, now_ms, nonce)}"


def check(secret: str, endpoint: str, now_ms: int, text: str) -> Ticket | NoTicket:
    parts = _SHAPE.fullmatch(text)
    if parts is None:
        return NoTicket("forged")
    issued_ms, nonce = int(parts[1]), parts[2]
    if not hmac.compare_digest(parts[3], _signature(secret, endpoint, issued_ms, nonce)):
        return NoTicket("forged")
    if not issued_ms - AHEAD_MS <= now_ms <= issued_ms + LIFE_MS:
        return NoTicket("expired")
    return Ticket(nonce, issued_ms, issued_ms + LIFE_MS)


def _signature(secret: str, endpoint: str, issued_ms: int, nonce: str) -> str:
    said = f"nova dashboard ticket\n{endpoint}\n{issued_ms}\n{nonce}"
    return hmac.new(secret.encode(), said.encode(), sha256).hexdigest()
