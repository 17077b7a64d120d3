"""`nova serve` among the other commands: same flags, same parser, so that the help is complete."""

import typer

from nova_mcp.cli.serving import serve as serving

app = typer.Typer(add_completion=False)


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    add_help_option=False,
)
def serve(context: typer.Context) -> None:
    """Serve MCP on stdin and stdout, or over HTTP; an MCP client starts this."""
    raise typer.Exit(serving.run(context.args))
