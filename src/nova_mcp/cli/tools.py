"""`nova tools`: what clients are shown, what that costs them, and the files made from the catalogue."""

import json as codec
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from nova_mcp.cli.commands import COMMANDS, load
from nova_mcp.cli.completion import COMPLETION_FILE
from nova_mcp.cli.completion_file import completion_text
from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.terminal import EXIT_CONFIGURATION, EXIT_FAILED, fail, note, print_json, print_table, say
from nova_mcp.core.keywords import some
from nova_mcp.core.tokens import estimate_tokens
from nova_mcp.server.manifest import MANIFEST_FILE, ListedTool, load_manifest
from nova_mcp.settings import Settings
from nova_mcp.tools.catalogue import load_catalogue
from nova_mcp.tools.names import published_name
from nova_mcp.tools.publish import manifest_text, reasons_text, reference_text

app = typer.Typer(add_completion=False)


@app.command()
def tools(
    bundle: Annotated[str | None, typer.Option(help="core, all, or bundles: a,b; default: as configured.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Regenerate manifest, completions, reference pages.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit code 1 when they are out of date.")] = False,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Show the published tools and how many tokens each costs in tools/list (an estimate)."""
    settings = read_settings(data_dir, store)
    if write or check:
        _generated(write=write)
        return
    try:
        listed = load_manifest().profile(bundle or settings.tools)
    except ValueError as error:
        fail(str(error), code=EXIT_CONFIGURATION)
    rows = [(published_name(tool.name, settings.tool_names), tool, cost(tool, settings)) for tool in listed]
    total = sum(tokens for _, _, tokens in rows)
    if json:
        entries = [
            {"name": name, "effect": tool.effect, "bundles": list(tool.bundles), "tokens": tokens}
            for name, tool, tokens in rows
        ]
        print_json({"profile": bundle or settings.tools, "tools": entries, "tokens": total})
        return
    print_table(
        ("tool", "effect", "tokens", "bundles", "title"),
        [(name, tool.effect, tokens, " ".join(tool.bundles), tool.title) for name, tool, tokens in rows],
    )
    note(f"{some(len(rows), 'tool')}, about {total:,} tokens; an estimate, within fifteen per cent of o200k.")


def cost(tool: ListedTool, settings: Settings) -> int:
    """Tokens of one entry of tools/list, written as compactly as it is sent."""
    entry = {
        "name": published_name(tool.name, settings.tool_names),
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": tool.annotations,
    }
    if settings.output_schemas and not settings.text_only:
        entry["outputSchema"] = tool.output_schema
    return estimate_tokens(codec.dumps(entry, ensure_ascii=False, separators=(",", ":")))


def _generated(*, write: bool) -> None:
    stale = False
    for path, text in _generated_files().items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale = True
        if write:
            path.write_text(text, encoding="utf-8", newline="\n")
            say(f"written: {path}")
        else:
            note(f"out of date: {path}")
    if stale and not write:
        fail("generated files are out of date", "run `make docs`", EXIT_FAILED)
    if not stale:
        say("generated files are up to date")


def _generated_files() -> dict[Path, str]:
    """Where each belongs and what stands in it; only a source checkout has them all."""
    package = Path(str(files("nova_mcp")))
    checkout = package.parent.parent
    if not (checkout / "pyproject.toml").is_file():
        fail("generated files are made in a source checkout only", code=EXIT_CONFIGURATION)
    catalogue = load_catalogue()
    return {
        package / "server" / MANIFEST_FILE: manifest_text(catalogue),
        package / "cli" / COMPLETION_FILE: completion_text(tuple(COMMANDS), load),
        checkout / "docs" / "tools.md": reference_text(catalogue),
        checkout / "docs" / "reasons.md": reasons_text(),
    }
