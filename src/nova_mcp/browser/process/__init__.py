"""The browser process and its driver: start, watch, replace, end."""

__all__ = [
    "browser_loss",
    "child_environment",
    "chromium_flags",
    "find_chromium",
    "host_lag",
    "install",
    "page_meter",
    "runtime",
]
