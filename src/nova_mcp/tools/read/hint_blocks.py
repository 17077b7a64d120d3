"""What other parts of Nova say beside a look at a page: in which order, and how they share its budget."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from nova_mcp.core.page.looks import SignalsSeen
from nova_mcp.core.tokens import estimate_tokens, fit_tokens, line_tokens
from nova_mcp.core.values import Json
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.guarded.goals import GoalContextPart, goal_context_part
from nova_mcp.tools.read.fact_hints import ToldHints, ok_hints
from nova_mcp.tools.read.knowledge_hints import NOTHING_KNOWN, KnowledgeHints, ToldKnowledge, knowledge_hints
from nova_mcp.tools.read.memory_hints import NOTHING_TO_MIND, ToldMemory, memory_hints
from nova_mcp.tools.read.note_hints import NoteHints, note_hints, note_omissions, notes_still
from nova_mcp.tools.read.run_hints import NO_RUNS, RunHints, run_hints, runs_still

T = TypeVar("T")

# All of it together gets this much of the answer at most; the page itself needs the rest.
ADVISORY_TOKENS: Final = 300
ADVISORY_SHARE: Final = 4


@dataclass(frozen=True, slots=True)
class Advisory:
    """What is going to be said, in the order of the text.

    It is gathered before the page is read, so that the page gets what is left of the budget, and settled after, when
    it is known what the page shows and whether the tab has moved on.
    """

    url: str
    goal: GoalContextPart | None
    goal_line: str
    notes: NoteHints | None
    runs: RunHints
    facts: ToldHints
    memory: ToldMemory
    knowledge: KnowledgeHints
    doubt_room: int
    doubts: tuple[str, ...] = ()
    known: ToldKnowledge = NOTHING_KNOWN

    @property
    def tokens(self) -> int:
        """What the text of the page has to leave free, asked before the page is read."""
        return line_tokens(self.lines) + self.doubt_room + self.knowledge.room

    @property
    def lines(self) -> str:
        told = self.doubts and self.doubt_room
        doubt = fit_tokens(f"ok: {' '.join(self.doubts)}", self.doubt_room - 1) if told else ""
        notes = () if self.notes is None else self.notes.lines
        told_all = (self.goal_line, *notes, self.runs.line, self.facts.line, doubt, self.memory.line, self.known.lines)
        return "\n".join(line for line in told_all if line)

    @property
    def omitted(self) -> list[str]:
        return [
            *note_omissions(self.notes),
            *self.runs.omitted,
            *self.facts.omitted,
            *self.memory.omitted,
            *self.known.omitted,
        ]

    def fields(self) -> dict[str, object]:
        """The typed form, by the names of the answer's fields; whoever asks for it puts it into an answer."""
        return {
            "goal_context": self.goal,
            "domain_notes": None if self.notes is None else self.notes.part(),
            "task_awareness": self.runs.part,
            "ok_hints": self.facts.part,
            "advisory_omitted": self.omitted,
            "browser_memory": self.memory.part,
            "warnings": list(self.doubts),
            **self.known.fields(),
        }

    async def settled(self, ctx: ToolContext, sighted: Mapping[str, Json], held: SignalsSeen | None) -> "Advisory":
        """What is said in the end, of the page that the tab shows now; `held` are the signs knowledge asked for."""
        said = self if ctx.tab.url == self.url else await self._moved(ctx)
        if said.facts.advice is not None:
            ctx.facts.told(said.facts.advice)
        return replace(
            said,
            doubts=tuple(said.facts.doubts(sighted)),
            known=said.knowledge.told(ctx, held),
            memory=said.memory.settled(ctx),
        )

    async def _moved(self, ctx: ToolContext) -> "Advisory":
        # No longer than what was kept free for the hint about the page before.
        facts = await unless_down(ok_hints(ctx, estimate_tokens(self.facts.line)), ToldHints())
        return replace(self, facts=facts, notes=notes_still(self.notes), runs=runs_still(ctx, self.runs))


async def unless_down(asked: Awaitable[T], otherwise: T) -> T:
    """What the store knows, or `otherwise` while it can't be asked: a look at a page does not depend on it."""
    try:
        return await asked
    except StoreUnavailable:
        return otherwise


async def advisory(ctx: ToolContext, max_tokens: int, known_notes_hash: str | None) -> Advisory:
    """The goal and what must be read come first; each of the others gets what those before it leave."""
    url = ctx.tab.url
    room = min(ADVISORY_TOKENS, max_tokens // ADVISORY_SHARE)
    context = ctx.verifier.goals.context(ctx.caller, ctx.tab.target_id, ctx.call.session_id)
    goal = goal_context_part(await unless_down(context, None))
    goal_line = "" if goal is None else fit_tokens(goal.line(), room)
    room -= line_tokens(goal_line)
    notes = await unless_down(note_hints(ctx, known_notes_hash), None)
    if notes is not None:
        room -= notes.tell_enforced(room)
    runs = await unless_down(run_hints(ctx, room), NO_RUNS)
    room -= line_tokens(runs.line)
    facts = await unless_down(ok_hints(ctx, max(0, room)), ToldHints())
    doubt_room = facts.room_for_doubts
    room -= line_tokens(facts.line) + doubt_room
    if notes is not None:
        room -= notes.tell_hints(room)
    memory = await unless_down(memory_hints(ctx, max(0, room - 1)), NOTHING_TO_MIND)
    room -= line_tokens(memory.line)
    knowledge = await unless_down(knowledge_hints(ctx, max(0, room)), KnowledgeHints())
    return Advisory(url, goal, goal_line, notes, runs, facts, memory, knowledge, doubt_room)
