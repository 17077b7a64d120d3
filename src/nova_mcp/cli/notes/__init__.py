"""`nova notes` and its subcommands."""
