"""`nova demo`: a scripted agent, a real browser and the evidence it leaves."""

import tempfile
from pathlib import Path

import anyio
import typer

from nova_mcp.cli.terminal import EXIT_FAILED, note, say
from nova_mcp.demo.site import practice_site
from nova_mcp.demo.story import play

app = typer.Typer(add_completion=False)


@app.command()
def demo() -> None:
    """Play a short story on a practice site; exit code 0 only if every chapter did what it says."""
    note("Starting a practice shop, a Nova server and a browser …")
    with tempfile.TemporaryDirectory(prefix="nova-demo-") as folder, practice_site() as site:
        chapters = anyio.run(play, site, Path(folder), say)
    right = sum(chapter.as_expected for chapter in chapters)
    say(f"{right} of {len(chapters)} chapters went as they should.")
    if right < len(chapters):
        raise typer.Exit(EXIT_FAILED)
