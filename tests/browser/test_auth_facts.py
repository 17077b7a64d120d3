"""What pages show of signing in: every fact on every kind of page, and nothing a page claims about itself."""

import pytest

from nova_mcp.browser.perceive.auth_surface import AuthSurface, read_auth

from .social_facts import read

pytestmark = pytest.mark.browser


@pytest.fixture
def tab(module_tab):
    return module_tab


FACTS = ("auth.loginWallVisible", "auth.loggedIn", "auth.mfaChallenge", "auth.authError", "auth.stage")
YES, NO, UNKNOWN = True, False, None

# page, login wall, logged in, second factor, error, stage
PAGES = [
    ("login_password", YES, NO, NO, NO, "login_wall"),
    ("login_german", YES, NO, NO, NO, "login_wall"),
    ("login_lone", YES, NO, NO, NO, "login_wall"),
    ("login_identity", YES, NO, NO, NO, "identity_step"),
    ("login_federated", YES, NO, NO, NO, "federated_login"),
    ("login_shadow", YES, NO, NO, NO, "login_wall"),
    ("login_error", YES, NO, NO, YES, "login_wall"),
    ("login_invalid_field", YES, NO, NO, YES, "login_wall"),
    ("login_notice", YES, NO, NO, NO, "login_wall"),
    ("two_logins", YES, NO, NO, NO, "login_wall"),
    ("register", UNKNOWN, NO, NO, NO, UNKNOWN),
    ("register_short", UNKNOWN, NO, NO, NO, UNKNOWN),
    ("mfa_code", NO, NO, YES, NO, "mfa_challenge"),
    ("mfa_boxes", NO, NO, YES, NO, "mfa_challenge"),
    ("mfa_named", NO, NO, UNKNOWN, NO, UNKNOWN),
    ("inside_signout", NO, YES, NO, NO, "authenticated"),
    ("inside_menu", NO, YES, NO, NO, "authenticated"),
    ("inside_accounts", NO, YES, NO, NO, "authenticated"),
    ("inside_few", NO, UNKNOWN, NO, NO, UNKNOWN),
    ("inside_hidden", NO, NO, NO, NO, "public_page"),
    ("contradictory", YES, UNKNOWN, NO, NO, "login_wall"),
    ("contradictory_links", NO, UNKNOWN, NO, NO, UNKNOWN),
    ("public", NO, NO, NO, NO, "public_page"),
    ("login_closed", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    ("framed", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    ("blank", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
]


async def test_each_page_says_what_it_shows_and_no_more(tab, site):
    found = {}
    for page, *_ in PAGES:
        await tab.page.goto(site.url(f"social/{page}.html"))
        found[page] = tuple((await read(tab, *FACTS)).values())
    assert found == {page: tuple(expected) for page, *expected in PAGES}


async def test_the_surface_tells_the_same_with_unknown_by_name(tab, site):
    await tab.page.goto(site.url("social/register.html"))
    assert await read_auth(tab) == AuthSurface("unknown", False, None, False, False)
    await tab.page.goto(site.url("social/login_error.html"))
    assert await read_auth(tab) == AuthSurface("login_wall", False, True, False, True)


CLAIMS = """
Object.assign(globalThis, {loggedIn: true, user: {name: "x"}, __nova: {facts: {"auth.loggedIn": true}}, WORDS: {}});
localStorage.setItem("user", "x");
document.documentElement.setAttribute("data-nova-auth-logged-in", "true");
document.body.setAttribute("data-nova", JSON.stringify({"auth.loggedIn": true}));
for (const name of ["getAttribute", "elements", "children", "parentNode", "matches"])
  for (const form of document.forms)
    form.append(Object.assign(document.createElement("input"), {type: "hidden", name}));
String.prototype.normalize = () => "sign out";
Element.prototype.getAttribute = () => "one-time-code";
"""


async def test_what_a_page_claims_about_itself_changes_no_fact(tab, site):
    for page in ("public", "login_password", "login_error", "mfa_boxes", "inside_signout"):
        await tab.page.goto(site.url(f"social/{page}.html"))
        before = await read(tab, *FACTS)
        await tab.page.evaluate(CLAIMS)
        assert (page, await read(tab, *FACTS)) == (page, before)


async def test_the_same_error_shown_again_is_another_instance(tab, site):
    await tab.page.goto(site.url("social/login_error.html"))
    question = {"facts": [{"name": "auth.authError"}]}
    first = (await tab.channel.ask("readFacts", question))["values"][0]
    assert (await tab.channel.ask("readFacts", question))["values"][0] == first
    await tab.page.evaluate("fault.replaceWith(fault.cloneNode(true))")
    second = (await tab.channel.ask("readFacts", question))["values"][0]
    assert (second["v"], second["s"] != first["s"]) == (True, True)


async def test_signs_outside_the_scope_do_not_count(tab, site):
    await tab.page.goto(site.url("social/contradictory.html"))
    refs = [{"name": "auth.loginWallVisible", "css": "nav"}, {"name": "auth.loggedIn", "css": "nav"}]
    values = (await tab.channel.ask("readFacts", {"facts": refs}))["values"]
    assert [fact.get("v") for fact in values] == [False, True]
