"""`nova resume`: lifts the emergency stop."""

import typer

from nova_mcp.cli.options import DataDir, Store, read_settings
from nova_mcp.cli.terminal import fail, say
from nova_mcp.core.stop_file import remove_stop

app = typer.Typer(add_completion=False)


@app.command()
def resume(data_dir: DataDir = None, store: Store = None) -> None:
    """Lift the emergency stop; agents may act again."""
    path = read_settings(data_dir, store).stop_file
    try:
        was_set = remove_stop(path)
    except OSError as error:
        fail(f"the stop could not be lifted: {error}", f"remove {path} by hand")
    say("Resumed." if was_set else "There was no stop.")
