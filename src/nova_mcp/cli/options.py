"""Flags that every command shares, and how they become settings and an open store."""

from pathlib import Path
from typing import Annotated, Any

import typer

from nova_mcp.cli.terminal import EXIT_CONFIGURATION, fail
from nova_mcp.settings import Settings, SettingsError, load_settings

DataDir = Annotated[
    Path | None, typer.Option("--data-dir", metavar="DIR", help="Data folder.", rich_help_panel="Where")
]
Store = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="sqlite:///path or postgresql://…", rich_help_panel="Where"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def read_settings(data_dir: Path | None, store: str | None) -> Settings:
    flags: dict[str, Any] = {"data_dir": data_dir, "store": store}
    try:
        return load_settings({name: value for name, value in flags.items() if value is not None})
    except SettingsError as error:
        fail(str(error), code=EXIT_CONFIGURATION)


def alone(ctx: typer.Context) -> bool:
    """Whether a group was called without a subcommand; flags before one would be lost, so they are refused."""
    if ctx.invoked_subcommand is None:
        return True
    given = [parameter.opts[0] for parameter in ctx.command.params if ctx.params.get(parameter.name or "")]
    if given:
        called = f"nova {ctx.info_name} {ctx.invoked_subcommand}"
        fail(f"{given[0]} belongs behind the subcommand", f"{called} {given[0]} …", EXIT_CONFIGURATION)
    return False
