"""What makes two commits the same one, as a hash that can be kept and compared."""

import hashlib
import json

from nova_mcp.verification.model import CommitIdentity


def identity_hash(identity: CommitIdentity) -> str:
    """64 hex digits. A caller's own key stands for the intent; without one, the control and what was filled in do."""
    if identity.intent_key is not None:
        parts = ["intent", identity.principal, identity.origin, identity.intent_key]
    else:
        parts = ["control", identity.principal, identity.origin, identity.control, identity.fields]
    # JSON keeps the parts apart whatever they contain; surrogates from odd page text must not break the hash.
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()
