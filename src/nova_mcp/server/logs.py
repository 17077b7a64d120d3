"""Where a serving process writes its log: always standard error, never the wire."""

import logging
import sys
from collections.abc import Callable
from types import TracebackType

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class OneEntry(logging.Formatter):
    """Keeps every entry recognisable: what callers and pages sent can neither begin a line nor steer a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name the standard library calls
        return _harmless(super().formatMessage(record))

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802 - the name the standard library calls
        return "\n".join(f"  {_harmless(line)}" for line in super().formatException(ei).split("\n"))


def _harmless(line: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


def log_to_stderr(level: str) -> None:
    """Set up the log unless whoever embeds the server already did."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneEntry(FORMAT))
    logging.basicConfig(level=level.upper(), handlers=[handler])


class Hiding(logging.Formatter):
    """Writes what another formatter writes, with secrets replaced: in messages, arguments and tracebacks alike."""

    def __init__(self, inner: logging.Formatter | None, redact: Callable[[str], str]) -> None:
        super().__init__()
        self.inner = inner or logging.Formatter()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(self.inner.format(record))


def hide_in_logs(redact: Callable[[str], str]) -> Callable[[], None]:
    """From here on no handler of the process writes a secret; returns what ends it."""
    covered: list[tuple[logging.Handler, Hiding]] = []
    for handler in logging.getLogger().handlers:
        hiding = Hiding(handler.formatter, redact)
        handler.setFormatter(hiding)
        covered.append((handler, hiding))

    def uncover() -> None:
        for handler, hiding in covered:
            if handler.formatter is hiding:
                handler.setFormatter(hiding.inner)

    return uncover
