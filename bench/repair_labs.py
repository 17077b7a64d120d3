"""Real redesigns: every element of a page, looked for on the next published version of that page."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.repair_look import Elements, site_elements
from bench.repair_sites import SITES, Site
from bench.repair_truth import Heading, Mislabelled, site_labels, truth_of
from nova_mcp.memory.knowledge.matching.page_facts import surroundings
from nova_mcp.memory.knowledge.model import ElementPrint
from nova_mcp.memory.knowledge.repair.repair import Assessment, assess

Seen = Mapping[tuple[str, str], Mapping[str, Elements]]
OldPage = Callable[[Sequence[ElementPrint], ElementPrint], Sequence[ElementPrint] | None]


@dataclass(frozen=True, slots=True)
class LabPair:
    """One page in two versions; `truth` holds the right nodes for every old element, None where nobody can say."""

    site: Site
    heading: Heading
    before: tuple[ElementPrint, ...]
    after: Elements
    truth: tuple[frozenset[int] | None, ...]


@dataclass(frozen=True, slots=True)
class LabTrial:
    pair: LabPair
    learned: ElementPrint
    truth: frozenset[int]
    found: Assessment | None


def stored_surroundings(before: Sequence[ElementPrint], learned: ElementPrint) -> Sequence[ElementPrint]:
    """What Nova keeps of the page an element was learned on."""
    return surroundings(before, learned)


def nothing_stored(before: Sequence[ElementPrint], learned: ElementPrint) -> None:
    return None


def lab_pairs(sites: Sequence[Site], seen: Seen) -> Iterator[LabPair]:
    """Every labelled pair that could be had; what does not fit its labels is named and left out."""
    for site in sites:
        labelled = site_labels(site.name)
        for page, old, new in site.pairs():
            heading = Heading(site.versions[old][0], site.path(page, old), site.versions[new][0], site.path(page, new))
            before = seen.get((site.name, heading.old_version), {}).get(heading.old_path)
            after = seen.get((site.name, heading.new_version), {}).get(heading.new_path)
            if before is None or after is None or heading not in labelled:
                continue
            prints = tuple(one.seen for one in before)
            try:
                places = truth_of(labelled[heading], prints, [one.seen for one in after])
            except Mislabelled as error:
                print(f"left out: {site.name} {heading}\n{error}", file=sys.stderr)
                continue
            truth = tuple(None if one is None else frozenset(after[at].node for at in one) for one in places)
            yield LabPair(site, heading, prints, after, truth)


def lab_trials(pairs: Sequence[LabPair], old_page: OldPage = stored_surroundings) -> list[LabTrial]:
    return [
        LabTrial(pair, learned, truth, assess(learned, pair.after, old_page(pair.before, learned)))
        for pair in pairs
        for learned, truth in zip(pair.before, pair.truth, strict=True)
        if truth is not None
    ]


async def measured_pairs(names: Sequence[str]) -> list[LabPair]:
    sites = [site for site in SITES if site.name in names]
    return list(lab_pairs(sites, await site_elements(sites)))
