"""`nova notes` and its subcommands."""

__all__: list[str] = []
