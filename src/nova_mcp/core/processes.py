"""Telling one process from a later one that got the same number, and this machine from others."""

import os
import socket
from pathlib import Path

import psutil

# The kernel counts in ticks; two readings of one start may differ by their rounding.
_TOLERANCE_MS = 50


def started_ms(process: psutil.Process) -> int:
    """When a process began, counted from the machine's boot where the kernel says so.

    A date would move with the clock: a process that lives would look like another one once the clock was set.
    """
    try:
        # The name may hold blanks and brackets, so the fields are counted from its last bracket.
        fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        return int(fields.split()[19]) * 1000 // os.sysconf("SC_CLK_TCK")
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            raise psutil.NoSuchProcess(process.pid) from None
    except (OSError, ValueError, IndexError):
        pass
    return int(process.create_time() * 1000)


def own_addresses() -> frozenset[str]:
    """Every address this machine has on a network."""
    families = (socket.AF_INET, socket.AF_INET6)
    found = (one for group in psutil.net_if_addrs().values() for one in group if one.family in families)
    return frozenset(one.address.partition("%")[0] for one in found)


def living(pid: int, began_ms: int) -> psutil.Process | None:
    """The very process that began then, if it still runs; `psutil.AccessDenied` when that can't be seen."""
    try:
        process = psutil.Process(pid)
        same = abs(started_ms(process) - began_ms) <= _TOLERANCE_MS
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None
