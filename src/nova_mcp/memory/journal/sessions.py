"""Activity sessions: stretches of one principal's work on one host, whichever of its agents did it; pure."""

import hashlib
from typing import Final

# A longer silence ends a session; a call that is written late still belongs to the one it was made in.
SESSION_GAP_MS: Final = 30 * 60_000


def session_id_for(call_id: str) -> str:
    """The id of a session that a call opens: sixteen hex digits, the same however often it is worked out."""
    return hashlib.sha256(b"activity-session\n" + call_id.encode("utf-8", "replace")).hexdigest()[:16]
