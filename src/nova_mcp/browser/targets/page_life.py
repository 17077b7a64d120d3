"""What a tab remembers of its page's comings and goings, so that nobody is said to have stayed where nothing was."""

from collections import deque
from typing import Final

from nova_mcp.core.clock import Clock
from nova_mcp.evidence.page_sights import PageLife

LEFT_KEPT: Final = 32
ACTIVE_KEPT: Final = 64


class LifeSigns:
    """Moments when a page stirred by itself, and when the page that stood in the tab was left."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._active: deque[int] = deque(maxlen=ACTIVE_KEPT)
        self._left: deque[int] = deque(maxlen=LEFT_KEPT)

    def stirred(self) -> None:
        self._active.append(self._clock.now_ms())

    def left(self) -> None:
        """Another document came, the address changed, or the page is gone."""
        now = self._clock.now_ms()
        self._left.append(now)
        self._active.append(now)

    def told(self) -> PageLife:
        return PageLife(tuple(self._active), tuple(self._left))
