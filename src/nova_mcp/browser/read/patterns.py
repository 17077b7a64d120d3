"""Regular expressions of callers on texts of pages: tried in a process that is ended when it takes too long."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final, TypeAlias

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from nova_mcp.core.values import Json
from nova_mcp.errors import Precondition

WORKER: Final = Path(__file__).with_name("pattern_worker.py")
KILL_S: Final = 1.0
# Starting a process and handing the text over is not the pattern's fault.
START_S: Final = 10.0
LINE_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Hit:
    """A match: which text, from where to where in UTF-16 units."""

    text: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class BadPattern:
    """The pattern can't be read."""

    why: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The pattern took longer than it may, and was ended."""


PatternResult: TypeAlias = tuple[Hit, ...] | BadPattern | TimedOut


@dataclass(frozen=True, slots=True)
class Pattern:
    text: str
    case_sensitive: bool = False
    # Whether a match of nothing counts as one.
    empty_too: bool = False
    # How long it may compute, whatever else the machine is doing; none leaves it the whole limit.
    cpu_s: float | None = None


def too_slow(*, host_busy: bool) -> Precondition:
    """What a caller is told whose pattern was ended."""
    return Precondition(
        "search.regex_timeout",
        stage="observe",
        details={"hostBusy": True} if host_busy else None,
    )


async def try_pattern(pattern: Pattern, texts: Sequence[str], most: int) -> PatternResult:
    """Where a pattern matches, at most so often; never longer than the limit."""
    order: Json = {
        "pattern": pattern.text,
        "caseSensitive": pattern.case_sensitive,
        "emptyToo": pattern.empty_too,
        "cpuSeconds": pattern.cpu_s,
        "texts": list(texts),
        "most": most,
    }
    command = [sys.executable, "-I", "-S", str(WORKER)]
    process = await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
    try:
        return await _answered(process, json.dumps(order).encode() + b"\n")
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


async def _answered(process: Process, order: bytes) -> PatternResult:
    if process.stdin is None or process.stdout is None:
        raise AssertionError("the process was opened with pipes")
    lines = BufferedByteReceiveStream(process.stdout)
    try:
        with anyio.fail_after(START_S):
            await process.stdin.send(order)
            await lines.receive_until(b"\n", 100)
        with anyio.fail_after(KILL_S):
            told = json.loads(await lines.receive_until(b"\n", LINE_BYTES))
    except (TimeoutError, anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError):
        return TimedOut()
    if "error" in told:
        return BadPattern(str(told["error"]))
    return tuple(Hit(*hit) for hit in told["hits"])
