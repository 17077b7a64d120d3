"""`nova demo`: a scripted agent, a real browser and the evidence it leaves."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import anyio
import typer

from nova_mcp.cli.demo_output import QUICK, STORY, Teller, compare
from nova_mcp.cli.terminal import EXIT_CONFIGURATION, EXIT_FAILED, fail, note
from nova_mcp.demo.playing import Played, play_quick, play_story
from nova_mcp.demo.quick import Comparison
from nova_mcp.demo.serving import Serving

app = typer.Typer(add_completion=False)


@app.command()
def demo(
    quick: Annotated[
        bool, typer.Option("--quick", help="Half a minute: three mishaps through a plain driver and through Nova.")
    ] = False,
    headed: Annotated[bool, typer.Option("--headed", help="Show the browser window.")] = False,
    serve: Annotated[bool, typer.Option("--serve", help="Leave the server and its dashboard open afterwards.")] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", metavar="DIR", help="Keep what the story leaves in this folder, which must be new."),
    ] = None,
) -> None:
    """Play a story over simulated days on a practice site; exit code 0 only if every chapter did what it says."""
    if quick and (serve or data_dir is not None):
        fail("--quick leaves nothing behind", "leave --serve and --data-dir out", EXIT_CONFIGURATION)
    with _folder(data_dir) as folder:
        kept = folder if data_dir is not None else None
        right = _quick(folder, headed=headed) if quick else _story(folder, kept, headed=headed, serve=serve)
    if not right:
        raise typer.Exit(EXIT_FAILED)


@contextmanager
def _folder(chosen: Path | None) -> Iterator[Path]:
    """A folder of the story's own; never one that somebody works with."""
    if chosen is None:
        with tempfile.TemporaryDirectory(prefix="nova-demo-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
        return
    if chosen.exists() and (not chosen.is_dir() or any(chosen.iterdir())):
        fail(f"{chosen} is in use", "name a folder that does not exist yet", EXIT_CONFIGURATION)
    yield chosen.absolute()


def _story(folder: Path, kept: Path | None, *, headed: bool, serve: bool) -> bool:
    teller = Teller()

    async def afterwards(played: Played, server: Serving) -> None:
        teller.ended(played)
        if serve:
            teller.open(server, folder)
            await server.ending.event.wait()
        else:
            teller.closing(kept)

    async def play() -> Played | None:
        return await play_story(folder, teller, headed=headed, then=afterwards)

    with teller.telling(STORY):
        played = anyio.run(play)
    if played is None:
        note("The story was ended before it was over.")
    return played is not None and played.right


def _quick(folder: Path, *, headed: bool) -> bool:
    teller = Teller()
    with teller.telling(QUICK):
        found: list[Comparison] = anyio.run(lambda: play_quick(folder, teller, headed=headed))
    compare(found)
    return bool(found) and all(one.as_expected for one in found)
