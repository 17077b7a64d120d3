"""`nova notes`: the user's own door to what agents are told, one kind of note per sub-command."""

from typing import Annotated, Any, Literal

import typer

from nova_mcp.cli.notes import domain as notes_domain
from nova_mcp.cli.notes import memory, operator
from nova_mcp.cli.notes.note_options import LISTED, told
from nova_mcp.cli.options import AsJson, DataDir, Store, alone, read_settings
from nova_mcp.cli.store.open_store import opened
from nova_mcp.cli.terminal import note, print_json, say
from nova_mcp.core.clock import SystemClock
from nova_mcp.tools.notes.note_params import parsed_domain

Kind = Literal["memory", "operator", "domain"]


def _group(text: str) -> typer.Typer:
    return typer.Typer(add_completion=False, no_args_is_help=True, help=text)


app = typer.Typer(add_completion=False)
_add, _edit, _delete = _group("Write a note."), _group("Change a note."), _group("Delete a note.")
app.add_typer(_add, name="add")
app.add_typer(_edit, name="edit")
app.add_typer(_delete, name="delete")
for _name, _room in (("memory", memory), ("operator", operator), ("domain", notes_domain)):
    _add.command(_name)(_room.add)
    _edit.command(_name)(_room.edit)
    _delete.command(_name)(_room.delete)


@app.callback(invoke_without_command=True)
def everything(ctx: typer.Context, json: AsJson = False, data_dir: DataDir = None, store: Store = None) -> None:
    """List, add, edit and delete notes: about sites for a user, across tasks, and for every agent on a site.

    Without a subcommand all of them are listed.
    """
    if alone(ctx):
        list_all(json=json, data_dir=data_dir, store=store)


@app.command("list")
def list_all(
    kind: Annotated[Kind | None, typer.Argument(metavar="[memory|operator|domain]", help="Only these.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", metavar="NAME", help="Only of this one.")] = None,
    domain: Annotated[str | None, typer.Option("--domain", metavar="HOST", help="Only about this host.")] = None,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Show notes of every principal, faded ones too."""
    now_ms = SystemClock().now_ms()
    with told():
        host = None if domain is None else parsed_domain(domain)
    with opened(read_settings(data_dir, store)) as database:
        memories = memory.rows(database, principal, host) if kind in (None, "memory") else []
        # Working rules are about no site.
        rules = operator.rows(database, principal) if kind in (None, "operator") and host is None else []
        sites = notes_domain.rows(database, principal, host) if kind in (None, "domain") else []
    if max(len(memories), len(rules), len(sites)) > LISTED:
        note(f"Only the first {LISTED} of a kind are shown; narrow them down with --principal or --domain.")
    memories, rules, sites = memories[:LISTED], rules[:LISTED], sites[:LISTED]
    if json:
        body: dict[str, Any] = {
            "memory": [memory.as_json(one, now_ms) for one in memories],
            "operator": [operator.as_json(one) for one in rules],
            "domain": [notes_domain.as_json(one) for one in sites],
        }
        print_json(body if kind is None else {kind: body[kind]})
        return
    if not memories and not rules and not sites:
        note("There are no such notes.")
    if memories:
        memory.show(memories, now_ms)
    if memories and (rules or sites):
        say("")
    if rules:
        operator.show(rules)
    if rules and sites:
        say("")
    if sites:
        notes_domain.show(sites)
