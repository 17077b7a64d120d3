"""`nova demo`: a scripted agent on a practice site, with a server and a data folder of its own."""

import tempfile
from pathlib import Path

import anyio
import typer

from nova_mcp.cli.options import DataDir, Store, read_settings
from nova_mcp.cli.terminal import EXIT_FAILED, note, say, visible
from nova_mcp.demo.site import practice_site
from nova_mcp.demo.story import Chapter, play

app = typer.Typer(add_completion=False)


@app.command()
def demo(data_dir: DataDir = None, store: Store = None) -> None:
    """Let a scripted agent use a real browser and show the evidence; exit code 1 when a step went wrong."""
    if store is not None:
        note("nova: the demo keeps its own store; --store is not used")
    with tempfile.TemporaryDirectory(prefix="nova-demo-", ignore_cleanup_errors=True) as folder:
        chapters = _play(Path(folder) if data_dir is None else read_settings(data_dir, None).data_dir)
    wrong = [chapter.title for chapter in chapters if not chapter.as_expected]
    say(f"\n{len(chapters) - len(wrong)} of {len(chapters)} steps went as they should.")
    if data_dir is not None:
        say(f"The evidence stays: nova events --data-dir {data_dir}")
    if wrong:
        note(f"Not as expected: {', '.join(wrong)}.")
        raise typer.Exit(EXIT_FAILED)


def _play(data_dir: Path) -> list[Chapter]:
    def tell(line: str) -> None:
        say(visible(line))

    with practice_site() as site:
        return anyio.run(play, site, data_dir, tell)
