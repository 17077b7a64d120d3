"""OK, operational knowledge: what is true right now in a tab, how sure that is, and since when."""

__all__ = ["model", "policies", "reader", "replay", "retention", "rules", "sensitive", "service"]
