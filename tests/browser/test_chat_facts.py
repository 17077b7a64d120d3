"""Message boxes, conversations and pickers: each fact at each step of a conversation, on differently built pages."""

import pytest

from .social_facts import read

pytestmark = pytest.mark.browser

BOX = ("composer.hasText", "composer.textEmpty", "composer.sendButton.clickable")
TALK = (
    "chat.outboundMessageAppeared",
    "chat.sentTextAppeared",
    "chat.assistantTurnCreated",
    "chat.streamActive",
    "chat.streamActive.started",
)
PICKED = (
    "model.selected",
    "model.dropdown.visible",
    "sandbox.selected",
    "sandbox.selected.changed",
    "sandbox.target.exists",
)
YES, NO, UNKNOWN = True, False, None

# page, has text, is empty, send can be pressed, then model, its list, workspace, changed, "South" is offered
PAGES = [
    ("chat_log", NO, YES, NO, "Swift", NO, UNKNOWN, UNKNOWN, UNKNOWN),
    ("chat_editable", NO, YES, YES, UNKNOWN, UNKNOWN, "Garten", NO, NO),
    ("chat_enter", NO, YES, NO, UNKNOWN, UNKNOWN, "North", NO, UNKNOWN),
    ("chat_two", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    ("chat_sends", NO, YES, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    ("chat_mute", NO, YES, NO, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    ("contact", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    ("public", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    ("pickers", UNKNOWN, UNKNOWN, UNKNOWN, "Swift", NO, "North", NO, UNKNOWN),
    ("two_models", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
]


async def test_each_page_says_what_it_shows_and_no_more(tab, site):
    found = {}
    for page, *_ in PAGES:
        await tab.page.goto(site.url(f"social/{page}.html"))
        found[page] = tuple((await read(tab, *BOX, *PICKED, label="South")).values())
    assert found == {page: tuple(expected) for page, *expected in PAGES}


class Conversation:
    """One armed message; each step tells what the facts say afterwards."""

    def __init__(self, tab, text):
        self.tab = tab
        self.text = text
        self.base = {}

    async def facts(self):
        return tuple((await read(self.tab, *TALK, base=self.base, text=self.text)).values())

    async def after(self, script):
        await self.tab.page.evaluate(script)
        return await self.facts()


async def armed(tab, site, text="Why do slugs like hostas?"):
    await tab.page.goto(site.url("social/chat_log.html"))
    await tab.page.evaluate("(text) => steps.type(text)", text)
    talk = Conversation(tab, text)
    assert await talk.facts() == (NO, NO, NO, NO, NO)
    return talk


async def test_a_message_that_is_sent_and_answered_shows_step_by_step(tab, site):
    talk = await armed(tab, site)
    assert await read(tab, *BOX) == dict(zip(BOX, (YES, NO, YES), strict=True))
    assert await talk.after("steps.post()") == (YES, YES, NO, NO, NO)
    assert await read(tab, *BOX) == dict(zip(BOX, (NO, YES, NO), strict=True))
    assert await talk.after("steps.stop(true)") == (YES, YES, NO, YES, YES)
    assert await talk.after("steps.answer('They')") == (YES, YES, YES, YES, YES)
    assert await talk.after("steps.stop(false)") == (YES, YES, YES, NO, YES)


async def test_a_new_chat_without_any_turn_shows_the_first_exchange(tab, site):
    await tab.page.goto(site.url("social/chat_app.html"))
    assert list((await read(tab, *BOX, "model.selected")).values()) == [NO, YES, NO, "Assistant 5"]
    await tab.page.evaluate("steps.type('Name three hardy roses')")
    assert list((await read(tab, *BOX)).values()) == [YES, NO, YES]
    talk = Conversation(tab, "Name three hardy roses")
    assert await talk.facts() == (NO, NO, NO, NO, NO)
    assert await talk.after("steps.post()") == (YES, YES, NO, YES, YES)
    assert list((await read(tab, *BOX)).values()) == [NO, YES, NO]
    assert await talk.after("steps.more('Rugosa')") == (YES, YES, YES, YES, YES)
    await talk.after("steps.end()")
    assert (await talk.facts())[4] is YES


async def test_turns_inside_a_wrapper_are_told_apart(tab, site):
    await tab.page.goto(site.url("social/chat_log.html"))
    await tab.page.evaluate(
        "log.innerHTML = '<div><div><div>Earlier question</div></div><div><div>Earlier answer</div></div></div>'"
    )
    talk = Conversation(tab, "And then what happened?")
    assert (await talk.facts())[:3] == (NO, NO, NO)
    own = "log.firstChild.insertAdjacentHTML('beforeend', '<div><div>And then what happened?</div></div>')"
    assert (await talk.after(own))[:3] == (YES, YES, NO)
    other = "log.firstChild.insertAdjacentHTML('beforeend', '<div><div>Nothing at all</div></div>')"
    assert (await talk.after(other))[:3] == (YES, YES, YES)


async def test_an_answer_that_grows_counts_as_being_written(tab, site):
    talk = await armed(tab, site)
    assert await talk.after("steps.post(); steps.answer('They')") == (YES, YES, YES, NO, NO)
    assert await talk.after("steps.more(' are tender.')") == (YES, YES, YES, YES, YES)


async def test_an_answer_marked_busy_counts_as_being_written(tab, site):
    talk = await armed(tab, site)
    await talk.after("steps.post(); steps.answer('')")
    assert await talk.after("reply.setAttribute('aria-busy', 'true'); reply.innerHTML = '…'") == (
        YES,
        YES,
        YES,
        YES,
        YES,
    )


async def test_what_the_page_adds_to_our_own_message_is_no_answer(tab, site):
    talk = await armed(tab, site)
    await talk.after("steps.post()")
    assert await talk.after("log.lastChild.append(' Delivered 10:32')") == (YES, YES, NO, NO, NO)


async def test_a_failure_notice_in_the_conversation_is_no_answer(tab, site):
    talk = await armed(tab, site)
    assert await talk.after("steps.fail()") == (NO, NO, NO, NO, NO)


async def test_a_text_that_was_said_before_counts_only_when_it_is_said_again(tab, site):
    talk = await armed(tab, site, "Earlier question")
    assert await talk.after("steps.post()") == (YES, YES, NO, NO, NO)


async def test_a_short_text_inside_other_words_is_not_our_message(tab, site):
    talk = await armed(tab, site, "hi")
    assert (await talk.after("steps.answer('This is something else')"))[:3] == (NO, NO, YES)
    assert (await talk.after("steps.post()"))[:2] == (YES, YES)


async def test_text_shown_with_its_markup_rendered_is_still_ours(tab, site):
    talk = await armed(tab, site, "This is **very** important\n\nsecond `line`")
    script = "steps.answer(''); reply.innerHTML = '<p>This is <b>very</b> important</p><p>second <code>line</code></p>'"
    assert (await talk.after(script))[:3] == (YES, YES, NO)


async def test_text_outside_of_the_conversation_proves_less(tab, site):
    talk = await armed(tab, site)
    script = (
        "document.querySelector('nav').append(Object.assign(document.createElement('p'), {textContent: box.value}))"
    )
    assert (await talk.after(script))[:2] == (NO, YES)


async def test_the_next_document_is_compared_with_the_one_before(tab, site):
    talk = await armed(tab, site)
    await tab.page.goto(site.url("social/chat_log.html"))
    assert (await talk.facts())[:3] == (NO, NO, NO)
    assert (await talk.after("steps.type('Why do slugs like hostas?'); steps.post(); steps.answer('Because')"))[:3] == (
        YES,
        YES,
        YES,
    )


async def test_an_editor_is_empty_until_something_stands_in_it(tab, site):
    await tab.page.goto(site.url("social/chat_editable.html"))
    for markup, filled in (
        ("<p><br></p>", False),
        ("<p>\u200b</p>", False),
        ("<p>Nachricht schreiben</p>", False),
        ('<p><span class="placeholder">Schreib</span></p>', False),
        ("<p>Moin</p>", True),
    ):
        await tab.page.evaluate("(markup) => { box.innerHTML = markup; }", markup)
        assert (markup, (await read(tab, "composer.hasText"))["composer.hasText"]) == (markup, filled)


async def test_a_picker_shows_its_list_its_options_and_that_it_changed(tab, site):
    await tab.page.goto(site.url("social/pickers.html"))
    base = {}
    names = ("sandbox.selected", "sandbox.selected.changed", "sandbox.target.exists")
    assert list((await read(tab, *names, base=base, label="South")).values()) == ["North", NO, UNKNOWN]
    await tab.page.click("#ws")
    assert list((await read(tab, *names, base=base, label="South")).values()) == ["North", NO, YES]
    assert (await read(tab, *names, base=base, label="West"))["sandbox.target.exists"] is NO
    await tab.page.click("text=South >> nth=0")
    assert list((await read(tab, *names, base=base, label="South")).values()) == ["South", YES, YES]


async def test_a_model_list_is_seen_while_it_is_open(tab, site):
    await tab.page.goto(site.url("social/chat_log.html"))
    await tab.page.click("#model")
    assert (await read(tab, "model.dropdown.visible"))["model.dropdown.visible"] is YES
    await tab.page.click("text=Thorough")
    names = ("model.selected", "model.dropdown.visible")
    assert await read(tab, *names) == {"model.selected": "Thorough", "model.dropdown.visible": NO}


CLAIMS = """
Object.assign(globalThis, {__nova: {facts: {"chat.streamActive": true}}, facts: {}, WORDS: {}});
document.body.setAttribute("data-nova-chat-stream-active", "true");
document.body.dataset.nova = JSON.stringify({"composer.hasText": true, "model.selected": "Evil"});
String.prototype.includes = () => true;
Array.prototype.filter = () => [];
Element.prototype.getAttribute = () => "true";
"""


async def test_what_a_page_claims_about_itself_changes_no_fact(tab, site):
    for page in ("chat_log", "chat_editable", "pickers"):
        await tab.page.goto(site.url(f"social/{page}.html"))
        names = (*BOX, *TALK, *PICKED)
        before = await read(tab, *names, text="Something of ours", label="South")
        await tab.page.evaluate(CLAIMS)
        assert (page, await read(tab, *names, text="Something of ours", label="South")) == (page, before)
