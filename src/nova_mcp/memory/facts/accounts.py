"""Who is signed in, known by a hash that tells accounts of one service apart without naming them; pure."""

import hashlib
from collections.abc import Mapping
from typing import Final

from nova_mcp.core.values import Json

HASH_CHARS: Final = 16
_BY_STRENGTH: Final = ("core.account.email", "core.account.display_name")


def account_hash(service_key: str, values: Mapping[str, Json]) -> str | None:
    """From the mail address, else from the visible name; None while neither is known."""
    for key in _BY_STRENGTH:
        value = values.get(key)
        if isinstance(value, str) and (identity := value.strip()):
            named = identity.lower() if key == "core.account.email" else identity
            return hashlib.sha256(f"{service_key}:{named}".encode("utf-8", "surrogatepass")).hexdigest()[:HASH_CHARS]
    return None
