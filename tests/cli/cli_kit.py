"""A data folder with a ledger in it, and the command line run in this process or in another."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from typer.testing import CliRunner, Result

from nova_mcp.cli.commands import app
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, Link, OutcomeKind, PageState, ServerId
from nova_mcp.evidence.store import ServerInfo, append_call, register_server
from nova_mcp.storage.engine import Database

DAY_MS = 86_400_000
NOW_MS = 1_790_000_000_000


@dataclass(slots=True)
class Folder:
    """A data folder whose store this process keeps open, as a running server does."""

    path: Path
    db: Database
    count: dict[str, int] = field(default_factory=dict)

    def serve(self, server: str, started_at_ms: int = NOW_MS) -> None:
        self.db.write_sync(register_server, ServerInfo(ServerId(server), started_at_ms, 1, 1, "host", "0"))
        self.count[server] = 0

    def call(self, server: str = "s1", **fields: object) -> Link:
        if server not in self.count:
            self.serve(server)
        self.count[server] += 1
        record = call_record(server, f"{server}-call-{self.count[server]}", **fields)
        return self.db.write_sync(append_call, record)


def call_record(server: str, call_id: str, **fields: object) -> CallRecord:
    given = {
        "agent": "default",
        "tool": "nova.perceive",
        "outcome": "ok",
        "reason": None,
        "target": "A1",
        "url": "https://shop.test/cart",
        "at_ms": NOW_MS,
        **fields,
    }
    page = PageState(target_id=str(given["target"]), sandbox_id="A", url=str(given["url"]), page_epoch=1)
    kind: OutcomeKind = given["outcome"]  # type: ignore[assignment]
    reason = given["reason"]
    return CallRecord(
        call_id=call_id,
        caller=Caller("local", str(given["agent"]), ServerId(server)),
        tool_name=str(given["tool"]),
        effect="read",
        started_at_ms=int(str(given["at_ms"])),
        duration_ms=12,
        outcome=CallOutcome(kind, reason_code=None if reason is None else str(reason)),
        before=page,
        after=page,
    )


def nova(*args: object, stdin: str | None = None) -> Result:
    """A command in this process."""
    return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "nova_mcp.cli", *(str(arg) for arg in args)]


def nova_process(*args: object, stdin: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, as a shell runs it."""
    return subprocess.run(
        command(*args), input=stdin, capture_output=True, text=True, timeout=180, check=False, cwd=cwd
    )
