"""PKS: reviewed knowledge of websites — how a situation is recognised, handled and verified, and how far that holds."""

__all__ = [
    "advice",
    "advisor",
    "apply_rules",
    "codec",
    "drift",
    "health",
    "matching",
    "model",
    "page",
    "platforms",
    "repair",
    "scopes",
    "service",
    "site_list",
    "store",
    "tables",
    "writes",
]
