"""Tools for live facts."""

__all__: list[str] = []
