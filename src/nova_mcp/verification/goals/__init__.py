"""Goals: registered work and its steps."""

__all__ = ["model", "register", "rules", "steps", "store"]
