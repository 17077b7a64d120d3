"""Layers over a page: which are found, what gets rid of them, and that nothing is ever agreed to."""

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest
from acting_kit import ClickOptions, click
from tests.pages.blockers.cases import CASES, HARMLESS

from nova_mcp.app import build
from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.blockers.dismiss import Dismissal, Order, dismiss
from nova_mcp.browser.blockers.look import look_for_blockers
from nova_mcp.browser.blockers.rules import Verdict, judge
from nova_mcp.browser.perceive.perception import PerceiveRequest, perceive
from nova_mcp.calls.model import CallRequest
from nova_mcp.core.clock import system_ports
from nova_mcp.core.page.consent_words import said_by
from nova_mcp.errors import Precondition
from nova_mcp.evidence.model import Caller, ServerId
from nova_mcp.settings import Settings

pytestmark = pytest.mark.browser
PORTS = system_ports()
PAGES = Path(__file__).resolve().parent.parent / "pages" / "blockers"


BY_PAGE = {case.page: case for case in CASES}
# Where nothing is left to hide the aggressive mode does what the other one does.
APART = [case for case in CASES if case.aggressive is not None]
WORKERS = 6


@dataclass(frozen=True)
class Outcome:
    """What was seen before, what the tool says, and what the page itself wrote down."""

    kinds: tuple
    blocking: tuple
    controls: frozenset
    done: Dismissal
    verdict: Verdict
    pressed: frozenset
    stored: str | None
    main_in_the_middle: bool


async def show(tab, site, page):
    await tab.page.goto(site.url(f"blockers/{page}.html"))
    await tab.page.evaluate("sessionStorage.clear()")
    if page == "framed_elsewhere":
        await tab.page.frames[1].wait_for_load_state()


async def truth(tab):
    """What the page wrote down: every press, and the choice that is stored now."""
    pressed, stored = await tab.page.evaluate("[sessionStorage.getItem('pressed'), sessionStorage.getItem('choice')]")
    return frozenset(json.loads(pressed or "[]")), stored


async def untouched(scene):
    """Nobody minds."""


async def run(tab, mode="conservative", passes=2):
    done = await dismiss(tab, Order(mode, passes), untouched, PORTS)
    return done, judge(done.tally)


async def tried(tab, site, page, mode):
    await show(tab, site, page)
    report = await perceive(tab, PerceiveRequest(), PORTS)
    done, verdict = await run(tab, mode, 2 if mode == "conservative" else 1)
    middle = "document.elementFromPoint(innerWidth / 2, innerHeight / 2)?.closest('main') != null"
    return Outcome(
        kinds=tuple(blocker.kind for blocker in report.blockers),
        blocking=tuple(blocker.blocking for blocker in report.blockers),
        controls=frozenset(label for blocker in report.blockers for label in blocker.controls),
        done=done,
        verdict=verdict,
        pressed=(await truth(tab))[0],
        stored=(await truth(tab))[1],
        main_in_the_middle=await tab.page.evaluate(middle),
    )


@pytest.fixture(scope="module")
async def outcomes(browser, server):
    """Every page in every mode that matters, some at a time: most of it is waiting for layers to stay away."""
    todo = [(case.page, "conservative") for case in CASES] + [(case.page, "aggressive") for case in APART]
    found = {}

    async def work(number):
        caller = Caller("blockers", f"worker{number}", ServerId("server_test"))
        tab = await browser.targets.open_tab(caller)
        # Pages open each other's frames, as they may when an agent has opened the site.
        for host in ("127.0.0.1", "localhost"):
            tab.guard.choose(server.url("", host=host))
        while todo:
            page, mode = todo.pop()
            found[page, mode] = await tried(tab, server, page, mode)
        await browser.targets.close_tab(tab)

    async with anyio.create_task_group() as group:
        for number in range(WORKERS):
            group.start_soon(work, number)
    return found


def test_every_page_of_the_set_has_a_case():
    inner = {"frame_inner", "form_done", "two"}
    assert {page.stem for page in PAGES.glob("*.html")} - inner == set(BY_PAGE)
    assert len(BY_PAGE) >= 25


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.page)
async def test_a_layer_is_found_with_its_kind_and_its_controls(outcomes, case):
    seen = outcomes[case.page, "conservative"]
    assert (seen.kinds, seen.blocking, seen.controls) == (case.kinds, case.blocking, case.controls)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.page)
async def test_getting_rid_of_layers_never_agrees_and_says_only_what_is_true(outcomes, case):
    seen, expected = outcomes[case.page, "conservative"], case.conservative
    assert seen.pressed <= HARMLESS
    said = (seen.verdict.reason_code, seen.done.tally.dismissed, seen.done.tally.choice)
    assert (*said, seen.stored) == (expected.reason, expected.dismissed, expected.choice, expected.stored)


@pytest.mark.parametrize("case", APART, ids=lambda case: case.page)
async def test_the_aggressive_mode_hides_what_is_left_and_calls_it_that(outcomes, case):
    seen, expected = outcomes[case.page, "aggressive"], case.aggressive
    assert seen.pressed <= HARMLESS
    assert seen.stored != "accept"
    assert (seen.verdict.status, seen.verdict.reason_code, seen.verdict.verified) == ("partial", expected.reason, False)
    assert (seen.done.tally.dismissed, seen.done.tally.choice) == (expected.dismissed, expected.choice)
    assert "hide" in [action.method for action in seen.done.actions]
    assert seen.main_in_the_middle


@pytest.mark.parametrize("page", ["login", "paywall", "age", "challenge_layer"])
async def test_what_needs_a_person_is_not_touched_in_any_mode(tab, site, page):
    await show(tab, site, page)
    done, verdict = await run(tab, "aggressive", 1)
    assert (await truth(tab))[0] == set()
    assert (done.actions, done.tally.dispatched, verdict.reason_code) == ((), False, "blockers.needs_human")
    assert await tab.page.is_visible("[data-layer]")


async def test_hiding_gives_the_page_its_scrolling_back(tab, site):
    await show(tab, site, "wall")
    await tab.page.evaluate("document.documentElement.style.overflow = 'hidden'")
    await run(tab, "aggressive", 1)
    await tab.page.mouse.move(200, 400)
    await tab.page.mouse.wheel(0, 300)
    await tab.page.wait_for_function("scrollY > 0")


async def test_two_layers_are_both_dealt_with(tab, site):
    await show(tab, site, "two")
    done, verdict = await run(tab)
    assert (done.tally.found, done.tally.dismissed, done.tally.remaining) == (2, 2, ())
    assert (verdict.status, done.tally.choice, (await truth(tab))[1]) == ("ok", "rejected", "reject")


async def test_a_page_without_layers_is_left_alone(tab, site):
    await show(tab, site, "standing")
    done, verdict = await run(tab)
    assert (done.tally.found, done.actions, verdict.status, verdict.verified) == (0, (), "ok", True)


async def test_overridden_methods_and_clobbering_names_change_nothing(tab, site):
    await show(tab, site, "en_bar")
    plain = await look_for_blockers(tab)
    await tab.page.evaluate(
        """() => {
          Element.prototype.getBoundingClientRect = () => ({ width: 0, height: 0, left: 0, top: 0 });
          Document.prototype.elementsFromPoint = () => [];
          Array.prototype.filter = () => [];
          for (const name of ['getAttribute', 'id', 'children', 'querySelectorAll', 'matches']) {
            const field = document.createElement('input');
            field.name = name;
            field.type = 'hidden';
            const form = document.createElement('form');
            form.append(field);
            document.getElementById('cookie-banner').append(form);
          }
        }"""
    )
    hostile = await look_for_blockers(tab)
    assert [(b.kind, b.blocking, [c.label for c in b.controls]) for b in hostile] == [
        (b.kind, b.blocking, [c.label for c in b.controls]) for b in plain
    ]


# -- a click of an agent's own inside a layer


async def test_a_click_that_sends_its_layer_away_is_verified(tab, site):
    await show(tab, site, "de_cover")
    report = await click(tab, Locator(selector="[data-does=accept]"), ClickOptions(), PORTS)
    assert (report.status, report.verify_state, report.retry_advice) == ("ok", "verified", "do_not_retry")


@pytest.mark.parametrize("page", ["comes_back", "stays"])
async def test_a_layer_that_stays_or_returns_proves_nothing(tab, site, page):
    await show(tab, site, page)
    report = await click(tab, Locator(selector="[data-does=reject]"), ClickOptions(), PORTS)
    assert report.verify_state != "verified"


async def test_a_window_of_the_site_that_closes_after_an_error_is_not_verified(tab, site):
    gone = "fetch('/html?status=500', {method: 'POST'}).then(() => this.parentNode.remove())"
    body = f"""<main><p>text</p></main>
      <div role=dialog aria-modal=true aria-label=Edit style="position:fixed;inset:20%;background:#eee">
      <button onclick="{gone}">Close</button></div>"""
    await tab.page.goto(site.url(f"html?body={quote(body)}"))
    report = await click(tab, Locator(selector="text=Close"), ClickOptions(), PORTS)
    assert (report.verify_state, report.reason_code) == ("uncertain", "action.error_signal")


async def test_a_covered_target_is_refused_and_the_layer_is_named_with_its_kind(tab, site):
    await show(tab, site, "newsletter")
    with pytest.raises(Precondition) as refused:
        await click(tab, Locator(selector="#read"), ClickOptions(timeout_ms=100), PORTS)
    assert refused.value.reason_code == "action.obstructed"
    assert refused.value.details["obstructedBy"]["blockerKind"] == "newsletter"
    assert (await truth(tab))[0] == set()


async def test_what_covers_the_page_is_known_after_a_look_and_forgotten_with_the_layer(tab, site):
    await show(tab, site, "newsletter")
    await perceive(tab, PerceiveRequest(), PORTS)
    read_on = tab.perception.selected_by("#read", tab.page_epoch)
    closing = next(c for b in await look_for_blockers(tab) for c in b.controls if c.label == "close")
    assert tab.blockers.over(tab.page_epoch, None if read_on is None else read_on.node) == "newsletter"
    assert tab.blockers.over(tab.page_epoch, closing.element.node) is None
    await run(tab)
    assert tab.blockers.over(tab.page_epoch, None) is None


# -- the page and the host read the same words


NAMES = [
    "Accept all",
    "Accept only necessary",
    "Alle akzeptieren",
    "Nur notwendige Cookies",
    "Continuer sans accepter",
    "Tout refuser",
    "Rechazar todo",
    "Don't reject",
    "Nicht ablehnen",
    "Reject all and continue",
    "Continue",
    "Close",
    "×",
    "Close my account",
    "No thanks, I like paying more",
    "Save my choices",
    "Manage options",
    "Accept necessary and marketing cookies",
    "Learn how we use only necessary cookies",
    "Got it!",
    "OK",
    "Strictly necessary cookies",
    "Ne pas refuser",
    "",
    "…",
    "Ablehnen",
    "Alles ablehnen und schließen",
    "Ich stimme nicht zu",
    "Je n'accepte pas",
    "No acepto",
    "Opt out",
    "Privacy policy",
    "Accetta solo i cookie necessari",
    "Alle cookies weigeren",
    "Отклонить все файлы cookie",
    "ΡΥΘΜΊΣΕΙΣ",
    "Tümünü kabul et",
    "必要なCookieのみを許可する",
    "全部拒绝",
    "동의하지 않고 계속하기",
    "ملفات تعريف الارتباط الضرورية فقط",
    "Ассept all",
    "Rеject all",
]


async def test_page_and_host_understand_labels_alike(module_tab, site):
    await module_tab.page.goto(site.url("html"))
    told = await module_tab.channel.ask("saidBy", {"texts": NAMES})
    assert dict(zip(NAMES, told, strict=True)) == {name: said_by(name) for name in NAMES}


# -- the tool as a client calls it


@dataclass
class Client:
    nova: object
    site: object

    async def call(self, tool, **arguments):
        answer = await self.nova.call(CallRequest(tool=f"nova.{tool}", arguments=arguments, principal="tester"))
        return answer.structured, answer.text

    async def show(self, page):
        await self.call("navigate", url=self.site.url(f"blockers/{page}.html"))
        await self.call("perceive")


@pytest.fixture(scope="module")
async def client(tmp_path_factory, server):
    nova = await build(Settings(data_dir=tmp_path_factory.mktemp("blockers"), tools="all"))
    client = Client(nova, server)
    await client.call("tab_new")
    yield client
    await nova.close("test over")


async def test_the_answer_says_what_was_found_done_and_chosen(client):
    await client.show("de_cover")
    told, text = await client.call("dismiss_blockers")
    assert (told["ok"], told["found"], told["dismissed"], told["remaining"]) == (True, 1, 1, [])
    assert told["actions"] == [{"method": "reject", "name": "Nur notwendige Cookies"}]
    assert (told["consentChoice"], told["verifyState"], told["dispatchProof"]) == ("rejected", "verified", "event")
    assert (told["actionDispatched"], told["retryAdvice"], told["reasonCode"]) == (True, "do_not_retry", None)
    assert text.splitlines()[0] == '1 of 1 gone · reject "Nur notwendige Cookies" · consent rejected'
    again, text = await client.call("dismiss_blockers")
    assert (again["status"], again["found"], again["actionDispatched"]) == ("ok", 0, False)
    assert text == "no layer lies over the page"


async def test_what_only_a_person_may_answer_is_refused_with_a_call_that_asks_one(client):
    await client.show("paywall")
    told, _ = await client.call("dismiss_blockers")
    assert (told["status"], told["errorCode"], told["reasonCode"]) == ("blocked", -32035, "blockers.needs_human")
    assert (told["actionDispatched"], told["consentChoice"], told["actions"]) == (False, "unknown", [])
    ((kind, blocking),) = [(one["kind"], one["blocking"]) for one in told["remaining"]]
    assert (kind, blocking, told["fix"]["args"]["kind"]) == ("paywall", True, "other")


async def test_a_second_failure_on_the_same_document_is_the_last(client):
    await client.show("stays")
    first, _ = await client.call("dismiss_blockers", maxPasses=1)
    assert (first["status"], first["reasonCode"], first["actionDispatched"]) == (
        "partial",
        "action.no_effect_observed",
        True,
    )
    for dispatched in (True, False):
        told, _ = await client.call("dismiss_blockers", maxPasses=1)
        assert (told["errorCode"], told["reasonCode"]) == (-32035, "blockers.repeat_suppressed")
        assert told["actionDispatched"] is dispatched
    hidden, _ = await client.call("dismiss_blockers", maxPasses=1, mode="aggressive")
    assert (hidden["status"], hidden["reasonCode"]) == ("partial", "blockers.hidden_only")


async def test_acting_behind_a_layer_is_noticed_and_acting_on_it_is_not(client):
    await client.show("newsletter")
    behind, _ = await client.call("click_selector", selector="#read", timeoutMs=100)
    assert behind["reasonCode"] == "action.obstructed"
    seen, _ = await client.call("perceive")
    close = seen["blockers"][0]["controls"]["close"]
    on_it, _ = await client.call("click_selector", ref=close)
    assert (on_it["verifyState"], "gates" in on_it) == ("verified", False)
