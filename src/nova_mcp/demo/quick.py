"""The half-minute story: three things that go wrong, through a plain driver and through Nova, side by side."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from playwright.async_api import Error, Page

from nova_mcp.core.keywords import some
from nova_mcp.demo.plain_driver import plain_page
from nova_mcp.demo.shop_chapters import ORDER, repeat_the_order
from nova_mcp.demo.site import PracticeSite
from nova_mcp.demo.stage import Agent, Broken
from nova_mcp.demo.story_clock import StoryClock
from nova_mcp.errors import NovaError
from nova_mcp.settings import BrowserSettings

PATIENCE_MS = 5_000


@dataclass(frozen=True, slots=True)
class Side:
    """What one of the two said, what its site counted, and whether that is what this story says of it."""

    said: str
    counted: str
    as_expected: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing that goes wrong, for both."""

    title: str
    plain: Callable[[Page, PracticeSite], Awaitable[Side]]
    nova: Callable[[Agent, PracticeSite, StoryClock], Awaitable[Side]]


@dataclass(frozen=True, slots=True)
class Comparison:
    title: str
    plain: Side
    nova: Side

    @property
    def as_expected(self) -> bool:
        return self.plain.as_expected and self.nova.as_expected


# -- a button under a layer


def _clicks(site: PracticeSite) -> tuple[int, int]:
    return site.received("shop", "POST", "/api/cart"), site.received("shop", "POST", "/api/veil")


def _clicked(said: str, counts: tuple[int, int], *, right: bool) -> Side:
    added, veiled = counts
    return Side(said, f"{added} in the cart, {some(veiled, 'click')} taken by an overlay", right)


async def _plain_click(page: Page, site: PracticeSite) -> Side:
    await page.goto(site.url("shop", "/offer"))
    async with page.expect_response("**/api/**", timeout=PATIENCE_MS):
        await page.click("#add", force=True)
    return _clicked(
        "success: click(force=True) returned without an error", _clicks(site), right=_clicks(site) == (0, 1)
    )


async def _nova_click(agent: Agent, site: PracticeSite, clock: StoryClock) -> Side:
    await agent.visit(site.url("shop", "/offer"))
    told = await agent.call("click_selector", selector="#add", timeoutMs=500)
    right = told.reason == "action.obstructed" and _clicks(site) == (0, 0)
    return _clicked(told.because, _clicks(site), right=right)


# -- a page that lies


def _saved(said: str, site: PracticeSite, *, right: bool) -> Side:
    tries = site.received("shop", "POST", "/api/profile")
    return Side(said, f"{some(tries, 'attempt')}, refused with 500", right and tries == 1)


async def _plain_save(page: Page, site: PracticeSite) -> Side:
    await page.goto(site.url("shop", "/profile"))
    async with page.expect_response("**/api/profile", timeout=PATIENCE_MS):
        await page.click("#save")
    shown = await page.inner_text("#note")
    return _saved(f'success: click() returned, and the page says "{shown}"', site, right=shown == "Profile saved.")


async def _nova_save(agent: Agent, site: PracticeSite, clock: StoryClock) -> Side:
    await agent.visit(site.url("shop", "/profile"))
    told = await agent.call("guarded_submit_form")
    status = (told.body.get("guardedCommit") or {}).get("verificationStatus")
    return _saved(told.without_advice, site, right=status == "verified_fail")


# -- an order, twice


def _ordered(said: str, site: PracticeSite, wanted: int) -> Side:
    orders = site.received("shop", "POST", "/api/order")
    return Side(said, f"{some(orders, 'order')} received", orders == wanted)


async def _plain_order(page: Page, site: PracticeSite) -> Side:
    for _ in range(2):
        await page.goto(site.url("shop", "/checkout"))
        await page.fill("#name", "Ada")
        await page.click("#order")
        await page.wait_for_selector("text=Order received", timeout=PATIENCE_MS)
    return _ordered("success, twice: both times click() returned and the page thanked for the order", site, 2)


async def _nova_order(agent: Agent, site: PracticeSite, clock: StoryClock) -> Side:
    await agent.visit(site.url("shop", "/checkout"))
    await agent.call("type_selector", selector="#name", text="Ada")
    first = await agent.call("click_selector", **ORDER)
    with clock.held():
        again = await repeat_the_order(agent, site)
    side = _ordered(f"first {first.body.get('verifyState')}, then {again.because}", site, 1)
    right = first.body.get("verifyState") == "verified" and again.reason == "guarded_commit.duplicate_suspected"
    return Side(side.said, side.counted, side.as_expected and right)


TRIALS = (
    Trial("A button under an invisible layer", _plain_click, _nova_click),
    Trial('A page that says "saved" when it was not', _plain_save, _nova_save),
    Trial("The same order, sent twice by mistake", _plain_order, _nova_order),
)


def _broken(error: Exception) -> Side:
    return Side(f"broke off: {str(error).partition(chr(10))[0]}", "", as_expected=False)


async def through_the_driver(settings: BrowserSettings, site: PracticeSite) -> list[Side]:
    sides: list[Side] = []
    try:
        async with plain_page(settings) as page:
            for trial in TRIALS:
                sides.append(await trial.plain(page, site))
    except (Error, NovaError) as error:
        sides += [_broken(error)] * (len(TRIALS) - len(sides))
    return sides


async def through_nova(agent: Agent, site: PracticeSite, clock: StoryClock) -> list[Side]:
    sides: list[Side] = []
    for trial in TRIALS:
        try:
            sides.append(await trial.nova(agent, site, clock))
        except Broken as error:
            sides.append(_broken(error))
    return sides


def side_by_side(plain: list[Side], nova: list[Side]) -> list[Comparison]:
    return [Comparison(trial.title, one, other) for trial, one, other in zip(TRIALS, plain, nova, strict=True)]
