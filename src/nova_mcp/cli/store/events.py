"""`nova events`: what agents called, from the ledger."""

from typing import Annotated

import typer

from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.store.call_lines import COLUMNS, as_json, follow, last_calls, row, since
from nova_mcp.cli.store.open_store import opened
from nova_mcp.cli.terminal import EXIT_CONFIGURATION, fail, note, print_json, print_table, say, visible
from nova_mcp.core.clock import SystemClock
from nova_mcp.evidence.model import OutcomeKind
from nova_mcp.evidence.reader import EventFilter
from nova_mcp.evidence.store import StoredCall
from nova_mcp.tools.names import canonical_name

app = typer.Typer(add_completion=False)


@app.command()
def events(
    tool: Annotated[str | None, typer.Option(help="Only this tool, in any spelling.")] = None,
    outcome: Annotated[OutcomeKind | None, typer.Option(help="Only calls that ended so.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent id.")] = None,
    target: Annotated[str | None, typer.Option(help="Only this tab.")] = None,
    since_text: Annotated[str | None, typer.Option("--since", help="30s, 10m, 2h, 7d ago, or an ISO time.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most the last so many.")] = 50,
    following: Annotated[bool, typer.Option("--follow", "-f", help="Go on with calls as they are recorded.")] = False,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Show recorded calls, oldest first; with --json one object per line."""
    settings = read_settings(data_dir, store)
    try:
        since_ms = None if since_text is None else since(since_text, SystemClock().now_ms())
    except ValueError as error:
        fail(f"--since: {error}", code=EXIT_CONFIGURATION)
    wanted = EventFilter(
        tool=None if tool is None else canonical_name(tool),
        outcome=outcome,
        agent=agent,
        target=target,
        since_ms=since_ms,
        limit=limit,
    )
    with opened(settings) as database:
        calls, positions = last_calls(database, wanted)
        if following:
            _stream(calls, json=json)
            try:
                for call in follow(database, wanted, positions):
                    _stream([call], json=json)
            except KeyboardInterrupt:
                return
        elif json:
            _stream(calls, json=True)
        elif calls:
            print_table(COLUMNS, map(row, calls))
        else:
            note("No calls match.")


def _stream(calls: list[StoredCall], *, json: bool) -> None:
    for call in calls:
        if json:
            print_json(as_json(call), line=True)
        else:
            say("\t".join(visible(cell) for cell in row(call)))
