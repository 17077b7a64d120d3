"""What agents can call, one file per family."""

__all__ = [
    "MANIFEST_VERSION",
    "PREFIX",
    "arguments",
    "browse",
    "catalogue",
    "context",
    "knowledge",
    "learning",
    "names",
    "notes",
    "profiles",
    "publish",
    "read",
    "results",
    "spec",
    "system",
    "times",
]

PREFIX = "nova."
MANIFEST_VERSION = 1
