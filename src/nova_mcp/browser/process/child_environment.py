"""The environment that Chromium and its driver get: an allow-list, so that secrets of the server stay with it; pure."""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

_NAMES: Final = frozenset(
    {
        # Where programs, files and texts are found.
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP", "LD_LIBRARY_PATH"),
        *("FONTCONFIG_FILE", "FONTCONFIG_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
        # A window, and the desktop around it.
        *(
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "XAUTHORITY",
            "DBUS_SESSION_BUS_ADDRESS",
            "XDG_RUNTIME_DIR",
            "XDG_SESSION_TYPE",
        ),
        *("XDG_CURRENT_DESKTOP", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS"),
        *("XDG_CONFIG_DIRS", "XDG_SESSION_TYPE"),
        # What operators set for the browser itself.
        *("CHROMIUM_FLAGS", "PLAYWRIGHT_BROWSERS_PATH", "PLAYWRIGHT_NODEJS_PATH"),
        # Windows starts no program without these.
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS", "USERNAME", "USERPROFILE", "HOMEDRIVE"),
        *("HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432"),
        *("ALLUSERSPROFILE", "PUBLIC", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE"),
    }
)
_PREFIXES: Final = ("LC_",)
_PROXIES: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})


def child_environment(environ: Mapping[str, str], also: Iterable[str] = ()) -> dict[str, str]:
    """The variables a child process may know; `also` names those an operator adds."""
    named = frozenset(also)
    return {name: value for name, value in environ.items() if name in named or _passes(name, value)}


def _passes(name: str, value: str) -> bool:
    upper = name.upper()
    if upper in _PROXIES:
        return without_password(value)
    return upper == "NO_PROXY" or upper in _NAMES or upper.startswith(_PREFIXES)


def without_password(proxy: str) -> bool:
    """Chromium takes no password from there anyway, so an address that holds one is of no use to it."""
    try:
        return "@" not in urlsplit(proxy if "//" in proxy else f"//{proxy}").netloc
    except ValueError:
        return False
