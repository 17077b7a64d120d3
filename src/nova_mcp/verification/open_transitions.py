"""Which transitions this server is still working on, so that one it failed to close is not waited for."""

from typing import Final

# Longer than it takes to write a record after an action has ended.
ABANDONED_MS: Final = 5000
FORGET_MS: Final = 3_600_000


class UnderWay:
    """Which transitions of this server are still being worked on."""

    def __init__(self) -> None:
        self._ended_ms: dict[str, float | None] = {}

    def begin(self, transition_id: str, now_ms: float) -> None:
        self._ended_ms[transition_id] = None
        for old in [one for one, ended in self._ended_ms.items() if ended is not None and now_ms - ended > FORGET_MS]:
            del self._ended_ms[old]

    def end(self, transition_id: str, now_ms: float) -> None:
        if transition_id in self._ended_ms:
            self._ended_ms[transition_id] = now_ms

    def abandoned(self, transition_id: str, now_ms: float) -> bool:
        """Ended here a while ago, and still nobody has written down how: the store must have failed meanwhile."""
        ended = self._ended_ms.get(transition_id)
        return ended is not None and now_ms - ended > ABANDONED_MS
