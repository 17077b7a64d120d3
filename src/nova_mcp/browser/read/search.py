"""Searching a page for words: every place, with a ref to act on and enough around it to recognise it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from nova_mcp.browser.channel.inline_frames import ask_inline
from nova_mcp.browser.channel.stable_question import on_one_document
from nova_mcp.browser.perceive.element_lines import is_fragile
from nova_mcp.browser.perceive.perception import selectors_for
from nova_mcp.browser.perceive.scan_values import Answer, Found, SeenElement, answer, read_element
from nova_mcp.browser.read.patterns import BadPattern, Hit, Pattern, TimedOut, too_slow, try_pattern
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

Match: TypeAlias = Literal["contains", "exact", "starts_with", "regex"]

ANSWER_MS: Final = 10_000
# More matches of a pattern than this are not counted.
MOST_HITS: Final = 20_000


@dataclass(frozen=True, slots=True)
class SearchRequest:
    text: str
    match: Match = "contains"
    case_sensitive: bool = False
    visible_only: bool = True
    max_results: int = 20
    context_chars: int = 80

    def question(self) -> dict[str, Json]:
        return {
            "text": self.text,
            "match": self.match,
            "caseSensitive": self.case_sensitive,
            "visibleOnly": self.visible_only,
            "maxResults": self.max_results,
            "contextChars": self.context_chars,
        }


@dataclass(frozen=True, slots=True)
class FoundText:
    """One place the words stand at."""

    ref: str
    element: SeenElement
    selector: Found | None
    snippet: str
    visible: bool
    in_viewport: bool

    @property
    def fragile(self) -> bool:
        return self.selector is None or is_fragile(self.selector)


@dataclass(frozen=True, slots=True)
class SearchReport:
    url: str
    count: int
    matches: tuple[FoundText, ...]
    scan_truncated: bool = False
    unsearched_frames: int = 0
    navigated_during_call: bool = False


@dataclass(slots=True)
class _Gathered:
    """What the documents of one page told."""

    url: str = ""
    count: int = 0
    truncated: bool = False
    documents: int = 0
    places: list[tuple[SeenElement, Answer]] = field(default_factory=list)
    selectors: dict[tuple[str, int], Found | None] = field(default_factory=dict)

    def take(self, frame_id: str | None, told: Answer, room: int) -> None:
        self.url = self.url or told["url"]
        self.count += told["count"]
        self.truncated = self.truncated or told["scanTruncated"]
        self.documents += 1
        for item in told["matches"][: max(0, room - len(self.places))]:
            self.places.append((read_element(item["element"], frame_id or ""), item))


async def search_text(tab: "Tab", request: SearchRequest) -> SearchReport:
    """Every place of the page that holds the words, its frames included."""
    if request.match != "regex" and not request.text.strip():
        raise InvalidParams("invalid_params", "text holds nothing but blanks.", "Give the words to look for.")

    async def look() -> _Gathered:
        gathered = _Gathered()
        told_by = _by_pattern(tab, request) if request.match == "regex" else _by_words(tab, request)
        async for frame_id, told in told_by:
            gathered.take(frame_id, told, request.max_results)
        await _add_selectors(tab, gathered)
        return gathered

    gathered, moved = await on_one_document(tab, look)
    return SearchReport(
        url=gathered.url,
        count=gathered.count,
        matches=_named(tab, gathered),
        scan_truncated=gathered.truncated,
        unsearched_frames=max(0, len(tab.page.frames) - gathered.documents),
        navigated_during_call=moved,
    )


def _named(tab: "Tab", gathered: _Gathered) -> tuple[FoundText, ...]:
    everything = [element for element, _ in gathered.places]
    named: dict[tuple[str, int], str] = {}
    for frame in dict.fromkeys(element.facts.frame for element in everything):
        own = [element for element in everything if element.facts.frame == frame]
        selectors = {element.node: gathered.selectors.get((frame, element.node)) for element in own}
        for element, name in zip(
            own, tab.perception.assign(own, gathered.url, tab.page_epoch, everything, selectors), strict=True
        ):
            named[(frame, element.node)] = name
    return tuple(
        FoundText(
            named[(element.facts.frame, element.node)],
            element,
            gathered.selectors.get((element.facts.frame, element.node)),
            item["snippet"],
            item["visible"],
            item["inViewport"],
        )
        for element, item in gathered.places
    )


async def _add_selectors(tab: "Tab", gathered: _Gathered) -> None:
    by_frame: dict[str, list[SeenElement]] = {}
    for element, _ in gathered.places:
        by_frame.setdefault(element.facts.frame, []).append(element)
    for frame, elements in by_frame.items():
        for node, found in (await selectors_for(tab, elements)).items():
            gathered.selectors[(frame, node)] = found


def _by_words(tab: "Tab", request: SearchRequest) -> AsyncIterator[tuple[str | None, Answer]]:
    return ask_inline(tab, "search", request.question(), ANSWER_MS)


async def _by_pattern(tab: "Tab", request: SearchRequest) -> AsyncIterator[tuple[str | None, Answer]]:
    """The page gives its text away, the pattern is tried outside of it, and the page says what stands there."""
    asked: Json = request.question()
    given = [(frame, told) async for frame, told in ask_inline(tab, "searchRuns", asked, ANSWER_MS)]
    texts = [text for _, told in given for text in told["runs"]]
    found = await try_pattern(Pattern(request.text, request.case_sensitive), texts, MOST_HITS)
    match found:
        case BadPattern(why=why):
            raise InvalidParams(
                "invalid_params", f"text is not a regular expression: {why}.", "Use Python's syntax, or match contains."
            )
        case TimedOut():
            raise too_slow(host_busy=tab.host_busy(1000))
        case hits:
            async for answered in _placed(tab, request, given, hits):
                yield answered


async def _placed(
    tab: "Tab", request: SearchRequest, given: list[tuple[str | None, Answer]], hits: tuple[Hit, ...]
) -> AsyncIterator[tuple[str | None, Answer]]:
    first = 0
    for frame_id, told in given:
        last = first + len(told["runs"])
        own: list[Json] = [[hit.text - first, hit.start, hit.end] for hit in hits if first <= hit.text < last]
        first = last
        question: dict[str, Json] = {**request.question(), "id": told["id"], "hits": own}
        placed = answer(await tab.channel.ask("searchHits", question, frame_id=frame_id, timeout_ms=ANSWER_MS))
        if not placed.get("lost"):
            truncated = placed["scanTruncated"] or told["scanTruncated"] or len(hits) >= MOST_HITS
            yield frame_id, {**placed, "scanTruncated": truncated}
