"""`nova stop`: the emergency stop that every server on this data folder obeys."""

import typer

from nova_mcp.cli.options import DataDir, Store, read_settings
from nova_mcp.cli.terminal import fail, say
from nova_mcp.core.stop_file import write_stop

app = typer.Typer(add_completion=False)


@app.command()
def stop(
    reason: str = typer.Option("", "--reason", help="A note for whoever finds the stop."),
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Stop every agent at once: running calls are cancelled, new ones refused, until `nova resume`."""
    path = read_settings(data_dir, store).stop_file
    try:
        fresh = write_stop(path, reason)
    except OSError as error:
        fail(f"the stop could not be written: {error}", f"create the file {path} by hand, or end the servers")
    say(f"Stopped: {path}. `nova resume` lifts it." if fresh else f"Already stopped: {path}.")
