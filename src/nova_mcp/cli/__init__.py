"""The command line: one file per command; it prints, and leaves deciding to the packages it calls."""

import sys

__all__ = ["main", "serve_main"]


def main() -> None:
    """`nova`. A client waits for `nova serve`, so that path never loads the other commands or what they print with."""
    if sys.argv[1:2] == ["serve"]:
        from nova_mcp.cli.serving.serve import run

        raise SystemExit(run(sys.argv[2:]))
    from nova_mcp.cli.commands import app

    try:
        # Named, so that `python -m` makes the same completion script as the command does.
        app(prog_name="nova")
    except OSError as error:
        # Whoever reads our output went away, or its disk is full; a stack trace would not help either.
        sys.stderr.write(f"nova: {error.strerror or error}\n")
        raise SystemExit(1) from None


def serve_main() -> None:
    """`nova-mcp`, the same as `nova serve`."""
    from nova_mcp.cli.serving.serve import run

    raise SystemExit(run(sys.argv[1:], program="nova-mcp"))
