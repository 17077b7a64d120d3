"""Tools for Browser Memory, Operator Notes and Domain Notes."""
