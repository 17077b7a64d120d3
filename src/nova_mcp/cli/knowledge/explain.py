"""`nova explain`: why an entry of knowledge stands where it stands, and what would move it."""

from typing import Annotated

import typer

from nova_mcp.cli.knowledge.site_arguments import SHOWN_IDS, ids_of, named_entry, named_site, no_entry
from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.store.open_store import opened
from nova_mcp.cli.terminal import EXIT_FAILED, fail, print_json, print_table, say, visible
from nova_mcp.core.clock import SystemClock
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.memory.promotion import overview
from nova_mcp.memory.promotion.gates.explanations import number
from nova_mcp.memory.promotion.model import Gate
from nova_mcp.memory.promotion.service import Explained, Unknown, told
from nova_mcp.storage.engine import Database
from nova_mcp.tools.learning.explain import explained

app = typer.Typer(add_completion=False)


@app.command()
def explain(
    first: Annotated[str, typer.Argument(metavar="SCOPE", help="The site, or the entry alone if one site has it.")],
    second: Annotated[str | None, typer.Argument(metavar="ID", help="The entry.")] = None,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Explain why an entry stands at its level: its gates, what is missing, and what would help."""
    entry = named_entry(first if second is None else second)
    given = None if second is None else named_site(first)
    settings = read_settings(data_dir, store)
    with opened(settings) as database:
        scope = _only_site(database, entry) if given is None else given
        match database.read_sync(told, scope, entry, None, SystemClock().now_ms(), settings.learning.consent_gates):
            case Unknown():
                no_entry(scope, entry, database.read_sync(ids_of, scope))
            case Explained() as found:
                _say(found, json=json)


def _only_site(database: Database, entry: str) -> ScopeName:
    scopes = database.read_sync(overview.sites_of, entry, SHOWN_IDS)
    if not scopes:
        fail(f"no site has an entry {entry[:80]}", "`nova knowledge SCOPE` lists the entries of a site", EXIT_FAILED)
    if len(scopes) > 1:
        fail(f"several sites have an entry {entry[:80]}", f"name one: {', '.join(scopes)}", EXIT_FAILED)
    return scopes[0]


def _say(found: Explained, *, json: bool) -> None:
    if json:
        print_json(explained(found).structured())
        return
    why = found.explanation
    say(visible(f"{found.shelved.scope} {found.shelved.stable_id}: {why.summary}"))
    if why.gates:
        say("")
        rows = [
            (one.name, number(one.required), number(one.observed), "yes" if one.passed else "no", _missing(one))
            for one in why.gates
        ]
        print_table((f"gate of {why.transition}", "asks for", "there is", "passes", "missing"), rows)
    if why.remediation:
        say("")
    for line in why.remediation:
        say(visible(f"Next: {line}"))


def _missing(gate: Gate) -> str:
    return "-" if gate.passed else number(gate.delta_to_pass)
