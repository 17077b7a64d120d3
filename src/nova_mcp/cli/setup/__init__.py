"""Commands that set up and check an installation."""

__all__: list[str] = []
