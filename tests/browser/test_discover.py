"""Finding what a guarded action is about: the one thing it can be, or an error that names the choices."""

import pytest

from nova_mcp.browser.act.locate import Locator, lower, prepare
from nova_mcp.browser.commits.discover import (
    find_composer,
    find_login,
    find_option,
    find_picker,
    find_send,
    find_submit,
)
from nova_mcp.errors import NotFound, Precondition

pytestmark = pytest.mark.browser


@pytest.fixture
def tab(module_tab):
    return module_tab


def ids(*controls):
    return tuple(None if control is None else control.element.facts.id for control in controls)


async def open_page(tab, site, page):
    await tab.page.goto(site.url(f"social/{page}.html"))


async def press(tab, control):
    """The ref has to lead to the element; pressing it is another matter."""
    ready = await prepare(tab, control.locator, 2000)
    await lower(tab, (None,))
    await tab.page.mouse.click(ready.x, ready.y)


async def choices(tab, call):
    """What an ambiguous call offers: each ref leads to an element of its own."""
    with pytest.raises(Precondition) as refused:
        await call
    assert refused.value.reason_code == "selector.ambiguous"
    offered = refused.value.details["candidates"]
    found = [tab.perception.get(entry["ref"]) for entry in offered]
    assert all(entry["line"].startswith(entry["ref"]) for entry in offered)
    return [ref.facts.id or ref.facts.name for ref in found]


async def refusal(call):
    with pytest.raises(NotFound) as refused:
        await call
    return refused.value.reason_code


# -- forms


async def test_the_only_form_beside_a_search_is_the_one_to_submit(tab, site):
    await open_page(tab, site, "contact")
    assert ids(await find_submit(tab)) == ("submit",)


async def test_several_forms_or_several_controls_are_named_not_guessed(tab, site):
    await open_page(tab, site, "forms")
    assert await choices(tab, find_submit(tab)) == ["save", "draft", "order"]
    assert await choices(tab, find_submit(tab, Locator(selector="#one"))) == ["save", "draft"]


async def test_a_named_form_field_or_control_leads_to_its_submit_control(tab, site):
    await open_page(tab, site, "forms")
    for given, found in (("#two", "order"), ("#b", "order"), ("#draft", "draft")):
        assert ids(await find_submit(tab, Locator(selector=given))) == (found,)
    assert await refusal(find_submit(tab, Locator(selector="#three"))) == "selector.not_found"


async def test_a_page_without_forms_has_nothing_to_submit(tab, site):
    await open_page(tab, site, "inside_signout")
    assert await refusal(find_submit(tab)) == "selector.not_found"


async def test_an_open_modal_is_the_only_place_to_look(tab, site):
    await open_page(tab, site, "forms")
    await tab.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend',"
        "'<dialog><form><input aria-label=D><button id=inner>Go</button></form></dialog>');"
        "document.querySelector('dialog').showModal()"
    )
    assert ids(await find_submit(tab)) == ("inner",)


# -- logins


@pytest.mark.parametrize(
    ("page", "kind", "parts"),
    [
        ("login_password", "password", ("user", "pass", "go")),
        ("login_german", "password", ("user", "pass", "go")),
        ("login_shadow", "password", ("user", "pass", "go")),
        ("login_identity", "identity", ("user", None, "go")),
        ("login_lone", "password", (None, "pass", None)),
    ],
)
async def test_the_parts_of_a_login_are_found(tab, site, page, kind, parts):
    await open_page(tab, site, page)
    login = await find_login(tab)
    assert (login.kind, ids(login.username, login.password, login.submit)) == (kind, parts)
    assert login.by_enter is (parts[2] is None)


async def test_a_register_form_a_code_and_providers_are_no_login_form(tab, site):
    for page in ("register", "register_short", "login_federated", "mfa_code", "public", "inside_signout"):
        await open_page(tab, site, page)
        assert (page, await refusal(find_login(tab))) == (page, "selector.not_found")


async def test_two_logins_are_named_and_either_can_be_chosen(tab, site):
    await open_page(tab, site, "two_logins")
    assert await choices(tab, find_login(tab)) == ["go-a", "go-b"]
    assert ids((await find_login(tab, Locator(selector="#b"))).submit) == ("go-b",)
    assert ids((await find_login(tab, Locator(selector="#go-a"))).submit) == ("go-a",)


async def test_a_login_inside_a_frame_is_found_through_its_frame(tab, site):
    await open_page(tab, site, "public")
    await tab.page.evaluate(
        "(url) => new Promise((done) => { const frame = document.createElement('iframe');"
        " frame.onload = done; frame.src = url; document.body.append(frame); })",
        site.url("social/login_password.html", host="localhost"),
    )
    frame_id = (await tab.channel.frame_ids())[1]
    login = await find_login(tab, Locator(selector="#login", frame_id=frame_id))
    assert ids(login.username, login.password, login.submit) == ("user", "pass", "go")
    assert login.submit.frame_id == frame_id
    assert ids(await find_submit(tab, login.password.locator)) == ("go",)


# -- messages


@pytest.mark.parametrize(("page", "send"), [("chat_log", "send"), ("chat_editable", "send"), ("chat_enter", None)])
async def test_the_message_box_and_what_sends_it_are_found(tab, site, page, send):
    await open_page(tab, site, page)
    composer = await find_composer(tab)
    assert (ids(composer.control), composer.has_text) == (("box",), False)
    sends = await find_send(tab, composer)
    assert (ids(sends.control), sends.by_enter) == ((send,), send is None)


async def test_two_message_boxes_are_named_and_either_can_be_chosen(tab, site):
    await open_page(tab, site, "chat_two")
    assert await choices(tab, find_composer(tab)) == ["one", "two"]
    chosen = await find_composer(tab, Locator(selector="#two"))
    assert ids((await find_send(tab, chosen)).control) == ("send-two",)


async def test_two_ways_to_send_are_named(tab, site):
    await open_page(tab, site, "chat_sends")
    assert await choices(tab, find_send(tab, await find_composer(tab))) == ["Send now", "Send later"]


async def test_a_page_without_a_message_box_or_without_a_way_to_send_says_so(tab, site):
    for page in ("public", "login_password", "contact", "forms"):
        await open_page(tab, site, page)
        assert (page, await refusal(find_composer(tab))) == (page, "action.no_input_field")
    await open_page(tab, site, "chat_mute")
    assert await refusal(find_send(tab, await find_composer(tab))) == "action.no_send_control"


async def test_a_box_in_a_conversation_without_any_control_is_sent_by_enter_unless_an_answer_runs(tab, site):
    await open_page(tab, site, "chat_log")
    await tab.page.evaluate("send.remove()")
    composer = await find_composer(tab)
    assert (await find_send(tab, composer)).by_enter
    await tab.page.evaluate("attach.insertAdjacentHTML('afterend', '<button>Stop</button>')")
    assert await refusal(find_send(tab, composer)) == "action.no_send_control"


async def test_the_chosen_box_is_the_one_the_facts_are_about(tab, site):
    await open_page(tab, site, "chat_two")
    await find_composer(tab, Locator(selector="#two"))
    await tab.page.fill("#two", "hello")
    told = await tab.channel.ask("readFacts", {"facts": [{"name": "composer.hasText"}]})
    assert told["values"][0]["v"] is True


# -- pickers


async def test_a_list_picker_is_opened_and_its_option_found_by_its_first_line(tab, site):
    await open_page(tab, site, "chat_log")
    picker = await find_picker(tab, "model")
    assert (ids(picker.control), picker.label, picker.native, picker.is_open) == (("model",), "Swift", False, False)
    assert await refusal(find_option(tab, "Thorough", picker)) == "option.not_found"
    await press(tab, picker.control)
    opened = await find_picker(tab, "model")
    assert opened.is_open
    option = await find_option(tab, "thorough", opened)
    assert (option.label, option.native, option.disabled) == ("Thorough", False, False)
    await tab.page.evaluate("models.children[1].click()")
    assert (await find_picker(tab, "model")).label == "Thorough"


async def test_a_native_picker_gives_its_option_by_index(tab, site):
    await open_page(tab, site, "pickers")
    picker = await find_picker(tab, "model")
    assert (ids(picker.control), picker.label, picker.native) == (("native",), "Swift", True)
    option = await find_option(tab, "Thorough", picker)
    assert (option.native, option.index, option.control.ref) == (True, 2, picker.control.ref)
    assert (await find_option(tab, "Old", picker)).disabled
    with pytest.raises(NotFound) as refused:
        await find_option(tab, "Huge", picker)
    assert refused.value.details == {"options": ["Swift", "Old", "Thorough"], "optionCount": 3}


async def test_a_workspace_menu_prefers_the_exact_label_and_names_twins(tab, site):
    await open_page(tab, site, "pickers")
    picker = await find_picker(tab, "workspace")
    assert (ids(picker.control), picker.label) == (("ws",), "North")
    await press(tab, picker.control)
    assert (await find_option(tab, "South")).label == "South"
    assert (await find_option(tab, "south", picker)).label == "south"
    assert await choices(tab, find_option(tab, "SOUTH")) == ["South", "south"]
    assert await choices(tab, find_option(tab, "Twin")) == ["Twin", "Twin"]


@pytest.mark.parametrize(
    ("markup", "label"),
    [
        ("Model X-1", "Model X-1"),
        ("Model: X-1", "X-1"),
        ("🌱 X-1+", "🌱 X-1+"),
        ("<span>Model</span> <span>X-1</span>", "X-1"),
        ("<svg width=9 height=9></svg>X-1 <span aria-hidden=true>▾</span>", "X-1"),
    ],
)
async def test_the_label_of_a_picker_is_what_is_chosen(tab, site, markup, label):
    await open_page(tab, site, "chat_log")
    await tab.page.evaluate("(markup) => { model.innerHTML = markup; }", markup)
    assert (await find_picker(tab, "model")).label == label


async def test_a_summary_opens_a_workspace_list_too(tab, site):
    await open_page(tab, site, "chat_enter")
    picker = await find_picker(tab, "workspace")
    assert (ids(picker.control), picker.label, picker.is_open) == (("open",), "North", False)


async def test_two_pickers_are_named_and_none_is_an_error(tab, site):
    await open_page(tab, site, "two_models")
    assert await choices(tab, find_picker(tab, "model")) == ["Left model", "Right model"]
    left = await find_picker(tab, "model", Locator(selector="select", nth=0))
    assert left.label == "Swift"
    assert await refusal(find_picker(tab, "workspace")) == "selector.not_found"


async def test_what_was_found_can_be_acted_on_by_its_ref(tab, site):
    await open_page(tab, site, "chat_log")
    await tab.page.evaluate("steps.type('hello'); send.addEventListener('click', () => steps.post())")
    sends = await find_send(tab, await find_composer(tab))
    await press(tab, sends.control)
    assert await tab.page.evaluate("[box.value, log.lastChild.textContent]") == ["", "hello"]
