"""Facts that are watched: told when they change, followed through documents and frames, lost only when gone."""

from contextlib import asynccontextmanager, suppress
from urllib.parse import quote

import anyio
import pytest

from nova_mcp.browser.act.locate import Locator, lower, prepare
from nova_mcp.browser.observe.effects import Watch, mark
from nova_mcp.browser.observe.page_witness import PageWitness
from nova_mcp.errors import Unavailable
from nova_mcp.verification.model import FactAddress, Seen, Unseen

pytestmark = pytest.mark.browser

SUCCESS = "form.successIndicator.visible"
LONG_MS = 15_000


class Watched:
    """A follower with the words a test needs."""

    def __init__(self, follower):
        self.follower = follower
        self.sample = None

    def baseline(self, key):
        return told(self.follower.baseline[FactAddress(key)])

    async def until(self, condition):
        """The first sample that fits; the limit only ends a broken run."""
        with anyio.fail_after(LONG_MS / 1000):
            while self.sample is None or not condition(self.sample):
                self.sample = await self.follower.next(LONG_MS)
                assert self.sample is not None
            return self.sample

    async def until_fact(self, key, value):
        return await self.until(lambda sample: told(sample.reading[FactAddress(key)]) == value)


def told(fact):
    return fact.value if isinstance(fact, Seen) else fact.error


@asynccontextmanager
async def watching(tab, *keys, frame_id=None, pressed=True, **options):
    async with tab.watch() as window:
        witness = PageWitness(tab, window, frame_id, **options)
        async with witness.follow([FactAddress(key) for key in keys]) as follower:
            if pressed:
                follower.pressed()
            yield Watched(follower)


async def live(tab, site):
    await tab.page.goto(site.url("facts/live.html"))


async def show(tab, site, body):
    await tab.page.goto(site.url(f"html?body={quote(body)}"))


def script(tab, source):
    return tab.page.evaluate(source)


# -- in one document


async def test_a_change_is_told_against_the_baseline(tab, site):
    await live(tab, site)
    async with watching(tab, SUCCESS, "dom.#state@text") as watched:
        assert (watched.baseline(SUCCESS), watched.baseline("dom.#state@text")) == (False, "")
        await script(tab, "document.getElementById('state').textContent = 'Saved'")
        sample = await watched.until_fact(SUCCESS, True)
        assert sample.reading[FactAddress("dom.#state@text")].value == "Saved"
        assert (sample.document, sample.lost) == (tab.channel.document, None)


async def test_nothing_is_told_while_the_facts_stay_as_they_are(tab, site):
    await live(tab, site)
    async with watching(tab, "dom.#save@visible") as watched:
        await script(tab, "document.getElementById('state').textContent = 'other'")
        assert await watched.follower.next(400) is None


@pytest.mark.parametrize(
    ("before", "change", "key", "value"),
    [
        ("<p id=a hidden>Text</p>", "a.hidden = false", "dom.#a@visible", True),
        ("<p id=a>Text</p>", "a.remove()", "dom.#a@gone", True),
        ("<p id=a>Text</p>", "a.firstChild.data = 'New'", "page.shows@New", True),
        ("<input id=a>", "a.value = 'typed'; a.dispatchEvent(new Event('input'))", "dom.#a@value", "typed"),
        # Properties change without any event or mutation; the slow tick finds them.
        ("<input id=a>", "a.value = 'silent'", "dom.#a@value", "silent"),
        ("<input type=checkbox id=a>", "a.checked = true", "dom.#a@checked", True),
        ("<p>x</p>", "document.title = 'Other'", "page.title", "Other"),
        ("<x-a id=a></x-a><script>a.attachShadow({mode:'open'}).innerHTML='<p>old</p>'</script>",
         "a.shadowRoot.firstChild.textContent = 'inner'", "dom.#a >>> p@text", "inner"),
        ("<p>x</p>", "history.pushState(0, '', '/orders/5')", "page.route", "/orders/5"),
        ("<p>x</p>", "location.hash = '#/list'", "page.urlChanged", True),
    ],
)  # fmt: skip
async def test_every_kind_of_change_is_noticed(tab, site, before, change, key, value):
    await show(tab, site, before)
    async with watching(tab, key) as watched:
        await script(tab, f"() => {{ {change} }}")
        assert (await watched.until_fact(key, value)).document == tab.channel.document


async def test_a_flicker_longer_than_the_gap_is_seen_coming_and_going(tab, site):
    await live(tab, site)
    async with watching(tab, SUCCESS) as watched:
        await script(tab, "document.getElementById('state').textContent = 'Saved'")
        await watched.until_fact(SUCCESS, True)
        await script(tab, "document.getElementById('state').textContent = ''")
        await watched.until_fact(SUCCESS, False)


async def test_a_mutation_storm_neither_floods_nor_hides_the_change(tab, site):
    await show(
        tab,
        site,
        "<p id=s></p><p id=n>0</p><script>let i=0;const go=()=>{for(let k=0;k<50;k+=1)n.textContent=++i;"
        "const c=new MessageChannel();c.port1.onmessage=go;c.port2.postMessage(0)};go();</script>",
    )
    dropped = tab.channel.told.dropped
    async with watching(tab, "dom.#n@text", "page.shows@Saved") as watched:
        for _ in range(20):
            assert await watched.follower.next(LONG_MS) is not None
        await script(tab, "() => { s.textContent = 'Saved' }")
        await watched.until_fact("page.shows@Saved", True)
    assert tab.channel.told.dropped == dropped


async def test_the_page_forgets_the_watch_when_it_ends(tab, site):
    await live(tab, site)
    heard = []
    tab.channel.on_message(heard.append)
    async with watching(tab, SUCCESS) as watched:
        await script(tab, "document.getElementById('state').textContent = 'Saved'")
        await watched.until_fact(SUCCESS, True)
    heard.clear()
    await script(tab, "document.getElementById('state').textContent = ''")
    async with watching(tab, "page.title") as watched:
        await script(tab, "document.title = 'Other'")
        await watched.until_fact("page.title", "Other")
    assert {len(message["values"]) for message in heard} == {1}
    assert all("values" in message and message["values"][0].get("v") in ("Live", "Other") for message in heard)


async def test_replaced_builtins_keep_nothing_from_being_told(tab, site):
    await tab.page.goto(site.url("facts/form_overrides.html"))
    async with watching(tab, SUCCESS, "form.fields.valid@css=%23order") as watched:
        assert watched.baseline("form.fields.valid@css=%23order") is False
        # The driver's own way to run a script stumbles over such a page.
        change = "document.getElementById('notice').textContent = 'Saved'; item.value = 'Spade'"
        await tab.channel.send("Runtime.evaluate", {"expression": change})
        await watched.until_fact(SUCCESS, True)
        await watched.until_fact("form.fields.valid@css=%23order", True)


async def test_a_document_that_is_written_anew_is_still_watched(tab, site):
    await live(tab, site)
    async with watching(tab, "page.shows@Order%20placed", "dom.#i@value") as watched:
        body = "<p>Order placed</p><input id=i>"
        await script(tab, f"() => {{ document.open(); document.write({body!r}); document.close() }}")
        await watched.until_fact("page.shows@Order%20placed", True)
        await tab.page.fill("#i", "typed")
        await watched.until_fact("dom.#i@value", "typed")


async def test_an_error_in_the_body_comes_out_as_it_went_in(tab, site):
    await live(tab, site)
    with pytest.raises(LookupError):
        async with watching(tab, SUCCESS):
            raise LookupError


# -- what the action did


async def test_a_click_without_effect_has_changed_nothing_and_one_with_effect_has(tab, site):
    await show(
        tab,
        site,
        "<main><button id=dead>Dead</button><button id=live>Live</button><p id=p>Saved</p></main>"
        "<script>document.getElementById('live').onclick=()=>{p.textContent='Saved again'}</script>",
    )
    for selector, changed in (("#dead", False), ("#live", True)):
        async with tab.watch() as window:
            prepared = await prepare(tab, Locator(selector=selector), 2000)
            async with PageWitness.of(tab, window, prepared).follow([FactAddress("dom.#p@visible")]) as follower:
                follower.pressed()
                await tab.page.mouse.click(prepared.x, prepared.y)
                sample = await follower.next(700)
                assert (sample is not None and sample.changed) is changed


async def test_a_submit_is_known_although_the_page_leaves_at_once(tab, site):
    await live(tab, site)
    async with watching(tab, "form.submitted") as watched:
        assert watched.baseline("form.submitted") is False
        await script(tab, "document.getElementById('f').requestSubmit()")
        await watched.until_fact("form.submitted", True)


async def test_a_forged_submit_event_is_none_and_a_form_that_leaves_is_one(tab, site):
    await live(tab, site)
    async with watching(tab, "form.submitted", "page.title") as watched:
        forged = "document.getElementById('f').dispatchEvent(new Event('submit', {bubbles: true}))"
        await script(tab, f"{forged}; document.title = 'forged'")
        assert (await watched.until_fact("page.title", "forged")).reading[FactAddress("form.submitted")] == Seen(False)
        await script(tab, "document.getElementById('f').outerHTML = document.getElementById('f').outerHTML")
        assert await watched.follower.next(400) is None
        await script(tab, "document.getElementById('f').remove()")
        await watched.until_fact("form.submitted", True)


# -- through documents


async def test_facts_are_followed_through_a_redirect_chain_into_the_new_document(tab, site):
    await live(tab, site)
    before = tab.channel.document
    async with watching(tab, SUCCESS, "page.urlChanged", "page.urlMatches@/facts/done.html", "dom.#f@gone") as watched:
        await script(tab, "document.getElementById('f').requestSubmit()")
        sample = await watched.until_fact(SUCCESS, True)
        assert sample.document > before
        sample = await watched.until_fact("page.urlMatches@/facts/done.html", True)
        assert [told(sample.reading[FactAddress(key)]) for key in ("page.urlChanged", "dom.#f@gone")] == [True, True]
        assert (sample.changed, sample.lost) == (True, None)
        posts = [request for request in sample.requests if request.mutating]
        assert [(request.method, request.status, request.reports) for request in posts] == [("POST", 303, True)]


async def test_between_two_documents_nothing_is_claimed(tab, site):
    await live(tab, site)
    before = tab.channel.document
    keys = ("dom.#f@gone", "page.shows@first%20part", "page.urlChanged", "form.errorBanner.visible", "dom.p@visible")
    async with watching(tab, *keys) as watched:
        await script(tab, "location.href = '/half'")
        # That document is never finished: what is there counts, what is missing may still come.
        await watched.until_fact("page.shows@first%20part", True)
        sample = await watched.until_fact("dom.p@visible", True)
        assert sample.document > before
        for key in ("dom.#f@gone", "page.urlChanged", "form.errorBanner.visible"):
            assert sample.reading[FactAddress(key)] == Unseen("fact_unreadable")


async def test_several_documents_in_a_row_end_in_the_last_one(tab, site):
    await live(tab, site)
    third = f"/html?title=third&body={quote('<p>End</p>')}"
    second = f"/html?title=second&body={quote(f'<script>location.replace({third!r})</script>')}"
    async with watching(tab, "page.title", "page.shows@End") as watched:
        await script(tab, f"location.href = {second!r}")
        sample = await watched.until_fact("page.shows@End", True)
        assert told(sample.reading[FactAddress("page.title")]) == "third"


async def test_a_closed_page_is_a_loss_and_keeps_the_last_reading(tab, site):
    await live(tab, site)
    async with watching(tab, "page.title") as watched:
        await tab.page.close()
        sample = await watched.until(lambda sample: sample.lost is not None)
        assert sample.lost == "page_navigated"
        assert told(sample.reading[FactAddress("page.title")]) == "Live"


async def test_a_crashed_page_is_a_loss(tab, site):
    await live(tab, site)
    async with watching(tab, "page.title", "runtime.rendererHealthy") as watched:
        async with anyio.create_task_group() as group:
            group.start_soon(crash, tab)
            sample = await watched.until(lambda sample: sample.lost is not None)
        assert sample.lost == "page_navigated"


async def crash(tab):
    with suppress(Unavailable):
        await tab.channel.send("Page.crash")


# -- frames


async def framed(tab, site, host):
    inner = site.url(f"html?title=Inner&body={quote('<p id=p>Inside</p>')}", host=host)
    await show(tab, site, f"<p id=out>Outside</p><iframe id=i src='{inner}'></iframe>")
    await tab.page.frames[1].wait_for_selector("p")
    return (await tab.channel.frame_ids())[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_frame_is_followed_through_its_own_documents(tab, site, host):
    frame_id = await framed(tab, site, host)
    async with watching(tab, "dom.#p@text", "page.title", frame_id=frame_id) as watched:
        assert watched.baseline("dom.#p@text") == "Inside"
        await tab.page.frames[1].evaluate("() => { p.textContent = 'Changed' }")
        await watched.until_fact("dom.#p@text", "Changed")
        await tab.page.frames[1].evaluate(f"location.href = '/html?title=Next&body={quote('<p id=p>Later</p>')}'")
        sample = await watched.until_fact("dom.#p@text", "Later")
        assert (sample.document, sample.lost) == (tab.channel.document, None)


async def test_a_frame_that_moves_to_another_site_is_followed_there(tab, site):
    frame_id = await framed(tab, site, "127.0.0.1")
    away = site.url(f"html?title=Away&body={quote('<p id=p>Away</p>')}", host="localhost")
    async with watching(tab, "dom.#p@text", frame_id=frame_id) as watched:
        await script(tab, f"() => {{ i.src = {away!r} }}")
        assert (await watched.until_fact("dom.#p@text", "Away")).lost is None


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_frame_that_is_taken_out_is_lost(tab, site, host):
    frame_id = await framed(tab, site, host)
    async with watching(tab, "dom.#p@text", frame_id=frame_id) as watched:
        await script(tab, "() => { i.remove() }")
        assert (await watched.until(lambda sample: sample.lost is not None)).lost == "frame_destroyed"


async def test_what_is_read_elsewhere_outlives_a_lost_frame(tab, site):
    frame_id = await framed(tab, site, "127.0.0.1")
    async with watching(tab, "dom.#p@text", "page.urlMatches@/facts/done.html", frame_id=frame_id) as watched:
        await script(tab, "location.href = '/facts/done.html'")
        sample = await watched.until_fact("page.urlMatches@/facts/done.html", True)
        assert sample.lost is None
        await watched.until_fact("dom.#p@text", "frame_mismatch")


# -- requests


async def test_a_response_is_a_fact_and_its_request_is_reported(tab, site):
    await live(tab, site)
    key = "network.response@POST%20/html"
    async with watching(tab, key) as watched:
        assert watched.baseline(key) == "fact_not_found"
        await script(tab, "() => { fetch('/html?status=422', {method: 'POST'}) }")
        sample = await watched.until_fact(key, 422)
        assert [(r.method, r.status, r.mutating, r.reports) for r in sample.requests] == [("POST", 422, True, True)]


async def test_a_request_without_answer_is_pending_and_orphaned_by_the_next_document(tab, site):
    await live(tab, site)
    async with watching(tab, "page.title") as watched:
        await script(tab, "() => { fetch('/never', {method: 'POST', keepalive: true}) }")
        sample = await watched.until(lambda sample: bool(sample.requests))
        assert [(r.pending, r.reports) for r in sample.requests] == [(True, True)]
        await script(tab, "location.href = '/facts/done.html'")
        sample = await watched.until_fact("page.title", "Done")
        post = next(request for request in sample.requests if request.mutating)
        assert post.failed or not post.reports


async def test_what_was_sent_before_the_press_is_not_the_actions_doing(tab, site):
    await live(tab, site)
    async with watching(tab, "page.title", pressed=False) as watched:
        await script(tab, "() => fetch('/nothing')")
        watched.follower.pressed()
        await script(tab, "() => fetch('/nothing')")
        await script(tab, "() => fetch('/html', {method: 'POST'})")
        sample = await watched.until(lambda sample: any(r.status for r in sample.requests))
        assert [request.url for request in sample.requests] == [site.url("html")]


async def test_what_an_action_changed_stays_known_after_its_own_watch_has_ended(tab, site):
    await live(tab, site)
    await script(tab, "document.getElementById('save').onclick = () => { state.textContent = 'Saved' }")
    async with tab.watch() as window:
        prepared = await prepare(tab, Locator(selector="#save"), 2000)
        async with PageWitness.of(tab, window, prepared).follow([FactAddress(SUCCESS)]) as follower:
            follower.pressed()
            since = mark(window)
            await tab.page.mouse.click(prepared.x, prepared.y)
            await Watch(tab, window, prepared, since).observe()
            await lower(tab, (prepared.frame_id,))
            sample = await Watched(follower).until_fact(SUCCESS, True)
            assert sample.changed
            await script(tab, "() => { state.textContent = '' }")
            assert (await Watched(follower).until_fact(SUCCESS, False)).changed
