"""What facts make possible: small compilers from values to capabilities; pure."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from nova_mcp.core.values import Json

Capabilities = dict[str, bool]

_IN: Final = frozenset({"logged_in", "signed_in", "authenticated"})
_OUT: Final = frozenset({"logged_out", "signed_out", "unauthenticated", "anonymous", "guest"})
# Tiers that hold what a pro plan does; plus and the like are below it.
_PRO: Final = frozenset({"pro", "max", "ultra", "team", "teams", "business", "enterprise"})
# Words of a label that offers such a plan, or says that there is none.
_OFFERED: Final = frozenset(
    {
        *("free", "basic", "starter", "none", "no", "not", "without", "upgrade", "get", "try", "buy", "switch", "from"),
        *("to", "expired", "ended", "canceled", "cancelled", "inactive", "kostenlos", "upgraden", "testen", "ohne"),
    }
)
_WORD: Final = re.compile(r"[a-z0-9]+")


def _words(value: Json) -> list[str]:
    return _WORD.findall(value.lower()) if isinstance(value, str) else []


def _authenticated(value: Json) -> Capabilities:
    word = value.strip().lower().replace(" ", "_").replace("-", "_") if isinstance(value, str) else ""
    return {"is_authenticated": word in _IN} if word in _IN | _OUT else {}


def _paid(value: Json) -> Capabilities:
    """A plan that is not shown proves nothing, so this never says no; nor does one that is only offered say yes."""
    words = set(_words(value))
    return {"can_use_pro": True} if words & _PRO and not words & _OFFERED else {}


def _subscribed(value: Json) -> Capabilities:
    return {"has_subscription": value} if isinstance(value, bool) else {}


def _choice(value: Json) -> Capabilities:
    return {"can_choose_model": True} if isinstance(value, list) and len(set(map(str, value))) > 1 else {}


def _features(value: Json) -> Capabilities:
    names = ["_".join(_words(item)) for item in value] if isinstance(value, list) else []
    return {f"feature.{name}": True for name in names if name}


_COMPILERS: Final[Mapping[str, Callable[[Json], Capabilities]]] = {
    "core.login_state": _authenticated,
    "core.plan.tier": _paid,
    "core.plan.label": _paid,
    "core.subscription.active": _subscribed,
    "core.models.available": _choice,
    "core.feature.available": _features,
}


def compile_capabilities(values: Mapping[str, Json]) -> Capabilities:
    """From the values of facts that may be relied on; what no fact speaks of is absent, not false."""
    found: Capabilities = {}
    for key in sorted(values):
        if (compiler := _COMPILERS.get(key)) is not None:
            found |= compiler(values[key])
    return dict(sorted(found.items()))
