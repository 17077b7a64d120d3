"""Time, identifiers and fault points as injectable ports."""

import os
import secrets
import time
from dataclasses import dataclass, field
from typing import NewType, Protocol

CallId = NewType("CallId", str)


class Clock(Protocol):
    """Wall time for records, monotonic time for measuring."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> float: ...


class Ids(Protocol):
    """Source of identifiers; tests replace it by a counter."""

    def call_id(self) -> CallId: ...

    def token(self, size: int = 16) -> str: ...


class Faults(Protocol):
    """Named places where a test may make the program fail or die."""

    def hit(self, point: str) -> None: ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1_000_000


def uuid7(at_ms: int, entropy: bytes) -> str:
    """RFC 9562 version 7: 48 bits of milliseconds, then 74 random bits from ten bytes."""
    value = (at_ms & ((1 << 48) - 1)) << 80
    noise = int.from_bytes(entropy[:10], "big")
    value |= 0x7 << 76 | (noise >> 68) << 64
    value |= 0b10 << 62 | (noise & ((1 << 62) - 1))
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class SystemIds:
    """Identifiers from the operating system's random source."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def call_id(self) -> CallId:
        return CallId(uuid7(self._clock.now_ms(), os.urandom(10)))

    def token(self, size: int = 16) -> str:
        return secrets.token_hex(size)


class NoFaults:
    """Production: nothing fails on purpose."""

    def hit(self, point: str) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything the program takes from outside that a test may want to hold still."""

    clock: Clock
    ids: Ids
    faults: Faults = field(default_factory=NoFaults)


def system_ports() -> Ports:
    clock = SystemClock()
    return Ports(clock=clock, ids=SystemIds(clock))
