"""`nova ledger`: is the record still what was written, and where does it end."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import Console
from sqlalchemy import Connection

from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.store.open_store import opened
from nova_mcp.cli.terminal import (
    EXIT_CONFIGURATION,
    EXIT_FAILED,
    fail,
    moment,
    note,
    print_json,
    print_table,
    say,
    visible,
)
from nova_mcp.core.keywords import some
from nova_mcp.evidence.audit import Erased, Finding, Head, verify
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.store import ServerRow, heads

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Check the evidence ledger, print its heads.")


class KeptHead(BaseModel):
    """One line of an exported head list."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    server_id: str = Field(alias="serverId")
    server_seq: int = Field(alias="serverSeq", ge=1)
    hash: str = Field(pattern=r"^[0-9a-f]{64}$")


class KeptHeads(BaseModel):
    """What `nova ledger head --json` printed some time ago."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    heads: tuple[KeptHead, ...]


@app.command("verify")
def verify_ledger(
    kept: Annotated[
        Path | None,
        typer.Option("--heads", metavar="FILE", help="Compare with heads kept from `nova ledger head --json`."),
    ] = None,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Walk every chain; exit code 1 names the first broken link of each, and every body missing without a record.

    This finds accidents and partial edits. Against somebody who owns the disk only heads kept elsewhere help.
    """
    exported = {} if kept is None else _read_heads(kept)
    with opened(read_settings(data_dir, store), older=True) as database:
        chains = database.read_sync(heads)
        total = sum(chain.head_seq for chain in chains)
        counted = f"{some(total, 'record')} in {some(len(chains), 'chain')}"
        with Console(stderr=True).status(f"Walking {counted}"):
            findings, erased = database.read_sync(_findings, exported)
    if json:
        print_json(
            {
                "ok": not findings,
                "chains": len(chains),
                "records": total,
                "comparedHeads": len(exported),
                "erased": erased.recorded,
                "erasedBeforeRecords": erased.before_records,
                "findings": [_finding(finding) for finding in findings],
            }
        )
    elif findings:
        for finding in findings:
            say(_sentence(finding))
        note(f"{len(findings)} broken among {counted}.")
    else:
        say(f"{counted}: every link holds.")
    if not json and erased.recorded:
        say(f"{some(erased.recorded, 'body', 'bodies')} erased, each named by a record of the ledger.")
    if not json and erased.before_records:
        say(f"{erased.before_records} of them before erasures were recorded: by whom and why is not known.")
    if findings:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def head(json: AsJson = False, data_dir: DataDir = None, store: Store = None) -> None:
    """Print the end of every chain; keep the list elsewhere and give it to `nova ledger verify --heads`."""
    with opened(read_settings(data_dir, store), older=True) as database:
        chains = database.read_sync(heads)
    if json:
        print_json({"heads": [_head(chain) for chain in chains]})
        return
    print_table(
        ("server", "records", "last seen", "hash"),
        [(chain.server_id, chain.head_seq, moment(chain.last_seen_ms), chain.head_hash.hex()) for chain in chains],
    )


def _findings(conn: Connection, kept: Mapping[ServerId, Head]) -> tuple[list[Finding], Erased]:
    erased = Erased()
    return list(verify(conn, kept, erased)), erased


def _head(chain: ServerRow) -> dict[str, str | int]:
    return {
        "serverId": chain.server_id,
        "serverSeq": chain.head_seq,
        "hash": chain.head_hash.hex(),
        "lastSeenMs": chain.last_seen_ms,
    }


def _finding(finding: Finding) -> dict[str, str | int | None]:
    return {
        "serverId": finding.server_id,
        "serverSeq": finding.server_seq,
        "callId": finding.call_id,
        "fault": finding.fault,
        "detail": finding.detail,
    }


def _sentence(finding: Finding) -> str:
    place = f"server {finding.server_id}"
    if finding.server_seq is not None:
        place += f", seq {finding.server_seq}"
    if finding.call_id is not None:
        place += f", call {finding.call_id}"
    return visible(f"BROKEN {place}: {finding.detail} ({finding.fault})")


def _read_heads(path: Path) -> dict[ServerId, Head]:
    try:
        parsed = KeptHeads.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        fail(f"--heads: {path} holds no list of heads: {str(error).splitlines()[0]}", code=EXIT_CONFIGURATION)
    return {ServerId(one.server_id): Head(one.server_seq, bytes.fromhex(one.hash)) for one in parsed.heads}
