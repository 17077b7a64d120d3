"""Whether a connection to the proxy was made by a browser that this process started."""

import logging
from typing import Final

import psutil

log = logging.getLogger(__name__)

_FAMILY: Final = "tcp4"


class OwnProcesses:
    """The processes below this one; the one that made the last connection is asked first."""

    def __init__(self) -> None:
        self._last: psutil.Process | None = None
        self._unreadable = False

    def opened(self, port: int) -> bool:
        """Whether one of them holds the local port; blocking, some milliseconds.

        SOCKS in Chromium knows no password, so the other end is told by its process. Where the system does not show
        the connections of a process to the one that started it, the connection is accepted.
        """
        if self._last is not None and _holds(self._last, port):
            return True
        unreadable = False
        for process in psutil.Process().children(recursive=True):
            held = _holds(process, port)
            if held:
                self._last = process
                return True
            unreadable |= held is None
        if unreadable and not self._unreadable:
            self._unreadable = True
            log.warning("other processes of this machine can't be told from the browser's; they could use its proxy")
        return unreadable


def _holds(process: psutil.Process, port: int) -> bool | None:
    """None when the system does not say."""
    try:
        return any(entry.laddr and entry.laddr.port == port for entry in process.net_connections(_FAMILY))
    except psutil.NoSuchProcess:
        return False
    except (psutil.AccessDenied, OSError):
        return None
