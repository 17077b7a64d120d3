"""Consent banners of other people and labelled pages: found, gone, choice stored as asked, each scored apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from tests.pages.blockers.cases import CASES

from bench.consent_labs import LABS, PACKAGES, Lab
from bench.consent_site import ConsentSite, Truth, consent_site
from bench.driving import Hand, close_hand, new_hand, nova_here
from bench.findings import bad_share
from bench.npm import npm_installed
from bench.packages import NotInstalled
from bench.tables import left_out, machine, remark, show, tell
from nova_mcp.app import Nova

MODES = ("conservative", "aggressive")
PAGES = Path(__file__).resolve().parent.parent / "tests" / "pages"
# Ordinary pages of the other sets: nothing lies over them.
PLAIN = (
    *("act/shop.html", "act/choices.html", "act/keys.html", "social/public.html", "social/contact.html"),
    *("social/login_password.html", "social/register.html", "facts/form.html", "social/forms.html"),
)
SHOWS_MS = 4000
LOOK_AGAIN_S = 0.2


@dataclass(frozen=True, slots=True)
class Result:
    """What Nova said before the truth was asked for, and the truth."""

    lab: Lab
    mode: str
    found: tuple[str, ...]
    said: Mapping[str, Any]
    truth: Truth | None

    @property
    def detected(self) -> bool:
        return "consent" in self.found

    @property
    def gone(self) -> bool:
        return self.truth is not None and self.truth.gone

    @property
    def accepted(self) -> bool:
        return self.truth is None or self.lab.accepted(self.truth.cookie)

    @property
    def as_asked(self) -> bool:
        """Refused where that is possible; nothing stored where only a yes could be."""
        if self.truth is None or self.accepted:
            return False
        return self.lab.accept_only or self.lab.refused(self.truth.cookie)

    @property
    def told_truly(self) -> bool:
        """The answer claims no more than what is stored and seen."""
        rejected = self.said.get("consentChoice") == "rejected"
        stored = self.truth is not None and self.lab.refused(self.truth.cookie)
        says_gone = self.said.get("status") == "ok" or self.said.get("reasonCode") == "blockers.hidden_only"
        return (not rejected or stored) and (not says_gone or self.gone)


async def _kinds(hand: Hand, wait_ms: int = SHOWS_MS) -> tuple[str, ...]:
    """What perceive finds; banners come a moment after the page."""
    end = anyio.current_time() + wait_ms / 1000
    while True:
        seen = await hand.call("nova.perceive", {"maxTokens": 400})
        kinds = tuple(str(one["kind"]) for one in seen.get("blockers", ()))
        if kinds or anyio.current_time() >= end:
            return kinds
        await anyio.sleep(LOOK_AGAIN_S)


async def run_one(hand: Hand, site: ConsentSite, lab: Lab, mode: str) -> Result:
    run = f"{lab.name}-{mode}".replace(" ", "_").replace(",", "")
    await hand.open(f"{site.base_url}/_empty")
    await hand.open(site.url(lab, run))
    found = await _kinds(hand)
    said = await hand.call("nova.dismiss_blockers", {"mode": mode})
    await hand.open(f"{site.base_url}/_empty")
    truth = await anyio.to_thread.run_sync(site.truth, run)
    return Result(lab, mode, found, said, truth)


def _yes(*values: bool) -> str:
    return " / ".join("yes" if value else "no" for value in values)


def _show_labs(results: Sequence[Result]) -> int:
    rows = []
    for lab in LABS:
        both = [next(r for r in results if r.lab is lab and r.mode == mode) for mode in MODES]
        rows.append(
            (
                lab.name + (" (only takes a yes)" if lab.accept_only else ""),
                _yes(both[0].detected),
                _yes(*(r.gone for r in both)),
                _yes(*(r.as_asked for r in both)),
                _yes(*(r.accepted for r in both)),
                " / ".join(str(r.said.get("consentChoice", r.said.get("reasonCode"))) for r in both),
                _yes(*(r.told_truly for r in both)),
            )
        )
    columns = ("banner (conservative / aggressive)", "found", "gone", "as asked", "accepted", "said", "said truly")
    show("Consent banners from the npm registry", columns, rows)
    total = len(results)
    for word, count in (
        ("found", sum(r.detected for r in results)),
        ("gone", sum(r.gone for r in results)),
        ("choice stored as asked", sum(r.as_asked for r in results)),
        ("accepted", sum(r.accepted for r in results)),
        ("answers that claim too much", sum(not r.told_truly for r in results)),
    ):
        remark(f"{word}: {count} of {total}")
    print()
    _judge(results)
    return sum(r.accepted or not r.told_truly for r in results)


def _judge(results: Sequence[Result]) -> None:
    asked = [r for r in results if not r.lab.accept_only]
    stays, kept = sum(not r.gone for r in asked), sum(not r.as_asked for r in results)
    tell(bad_share("T9", "banners that take a no and were still there", stays, len(asked), 0.01))
    tell(bad_share("T9", "choices not stored as asked", kept, len(results), 0.01))
    tell(bad_share("T9", "answers that claim more than is so", sum(not r.told_truly for r in results), len(results), 0))
    tell(bad_share("T9", "banners accepted", sum(r.accepted for r in results), len(results), 0))


@dataclass(frozen=True, slots=True)
class Page:
    path: str
    kinds: tuple[str, ...]
    found: tuple[str, ...] = ()


def _labelled() -> list[Page]:
    own = [Page(f"blockers/{case.page}.html", case.kinds) for case in CASES]
    return own + [Page(path, ()) for path in PLAIN]


async def _looked_at(hand: Hand, site: ConsentSite, page: Page) -> Page:
    await hand.open(f"{site.base_url}/{page.path}")
    return Page(page.path, page.kinds, await _kinds(hand, 300 if page.kinds else 0))


def _show_kinds(pages: Sequence[Page]) -> None:
    rows = []
    kinds = sorted({kind for page in pages for kind in (*page.kinds, *page.found)})
    for kind in kinds:
        labelled = sum(kind in page.kinds for page in pages)
        claimed = sum(kind in page.found for page in pages)
        right = sum(kind in page.found and kind in page.kinds for page in pages)
        rows.append(
            (kind, labelled, claimed, right / claimed if claimed else 1.0, right / labelled if labelled else 1.0)
        )
    plain = [page for page in pages if not page.kinds]
    show("Kinds on labelled pages (our own set)", ("kind", "labelled", "claimed", "precision", "recall"), rows)
    said = sum(bool(p.found) for p in plain)
    remark(f"pages without a layer that were said to have one: {said} of {len(plain)}\n")


async def _worker(nova: Nova, name: str, site: ConsentSite, queue: list[tuple[Lab, str]], out: list[Result]) -> None:
    hand = await new_hand(nova, name)
    while queue:
        lab, mode = queue.pop()
        out.append(await run_one(hand, site, lab, mode))
    await close_hand(hand)


async def _run(modules: Path) -> tuple[list[Result], list[Page]]:
    results: list[Result] = []
    # One jar holds the cookies of one run at a time, so the banners come one after another.
    queue = [(lab, mode) for lab in LABS for mode in MODES][::-1]
    async with nova_here(pictures=False) as nova:
        with consent_site(modules, PAGES, LABS) as site:
            await _worker(nova, "banners", site, queue, results)
            hand = await new_hand(nova, "pages")
            # The first look at a page of the set must not meet the choice an earlier one stored.
            pages = [await _looked_at(hand, site, page) for page in _labelled()]
            await close_hand(hand)
    return results, pages


def main(long: bool = False) -> int:
    """The same in both forms: the set is small."""
    try:
        modules = npm_installed("consent", *(f"{name}@{version}" for name, version in PACKAGES.items()))
    except NotInstalled as missing:
        left_out(str(missing))
        return 0
    results, pages = anyio.run(_run, modules)
    print(machine())
    bad = _show_labs(results)
    _show_kinds(pages)
    return bad
