"""Nova: a real browser and an accountable memory for any MCP client."""

from importlib import import_module

__version__ = "0.1.0"

# Loaded when first asked for: a client waits for `nova serve`, which needs none of it at once.
_PLACES = {
    "Answer": "calls.model",
    "CallRequest": "calls.model",
    "Embedded": "embedding",
    "ListedTool": "server.manifest",
    "Nova": "app",
    "NovaError": "errors",
    "Settings": "settings",
    "UnknownTool": "errors",
    "build": "app",
    "load_settings": "settings",
    "open_nova": "embedding",
}
__all__ = ["__version__", *_PLACES]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
