"""Commands for knowledge of sites."""

__all__: list[str] = []
