"""The hints of a look at a page: in which order they are said, and how they share its budget."""

from collections.abc import Mapping
from typing import Final

from nova_mcp.core.page.looks import SignalsSeen
from nova_mcp.core.tokens import line_tokens
from nova_mcp.core.values import Json
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.guarded.goals import GoalHint
from nova_mcp.tools.read.fact_hints import FactHint
from nova_mcp.tools.read.hint import Hint, Look, unless_down
from nova_mcp.tools.read.knowledge_hints import KnowledgeHint
from nova_mcp.tools.read.memory_hints import MemoryHint
from nova_mcp.tools.read.note_hints import NoteHint
from nova_mcp.tools.read.run_hints import RunHint

# All of it together gets this much of the answer at most; the page itself needs the rest.
ADVISORY_TOKENS: Final = 300
ADVISORY_SHARE: Final = 4


class Advisory:
    """What is going to be said.

    It is read before the page is, so that the page gets what is left of the budget, and settled after, when it is known
    what the page shows and whether the tab has moved on.
    """

    def __init__(self, ctx: ToolContext, known_notes_hash: str | None) -> None:
        self._ctx = ctx
        self._url = ctx.tab.url
        notes, facts, self.knowledge = NoteHint(ctx, known_notes_hash), FactHint(ctx), KnowledgeHint(ctx)
        goal, runs, memory = GoalHint(ctx), RunHint(ctx), MemoryHint(ctx)
        # In the order of the text.
        self._hints: tuple[Hint, ...] = (goal, notes, runs, facts, memory, self.knowledge)
        # The goal and what must be read come first; each of the others gets what those before it leave.
        self._shares = (
            goal.take, notes.take, runs.take, facts.take, notes.take_unenforced, memory.take, self.knowledge.take
        )  # fmt: skip

    async def read(self, max_tokens: int) -> None:
        for hint in self._hints:
            await unless_down(hint.read(), None)
        room = min(ADVISORY_TOKENS, max_tokens // ADVISORY_SHARE)
        for take in self._shares:
            room -= take(room)

    async def settle(self, sighted: Mapping[str, Json], held: SignalsSeen | None) -> None:
        """What is said in the end, of the page that the tab shows now; `held` are the signs knowledge asked for."""
        look = Look(self._ctx.tab.url != self._url, sighted, held)
        for hint in self._hints:
            await hint.settle(look)

    @property
    def tokens(self) -> int:
        """What the text of the page has to leave free, asked before the page is read."""
        return line_tokens(self.lines) + sum(hint.reserved for hint in self._hints)

    @property
    def lines(self) -> str:
        return "\n".join(hint.lines for hint in self._hints if hint.lines)

    def fields(self) -> dict[str, object]:
        omitted = [name for hint in self._hints for name in hint.omitted]
        said = {name: value for hint in self._hints for name, value in hint.fields().items()}
        return {**said, "advisory_omitted": omitted}
