"""Three small jobs done through each server with the best tools it offers, and checked against the shop's book."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bench.browser_pages import ORDERS, REPAIR, WANTED, Shop, order, product
from bench.peers import Hand, Said, Server, WentWrong

Job = Callable[[Hand, Shop], Awaitable[None]]

PAGE_TEXT: Final = "() => document.body.innerText"
NAME: Final = product(WANTED)
OUTCOME: Final = "is in your cart"
LABELS: Final[Mapping[str, tuple[str, str]]] = {
    "name": ("textbox", "Full name"),
    "email": ("textbox", "Email"),
    "phone": ("textbox", "Phone"),
    "street": ("textbox", "Street"),
    "city": ("textbox", "City"),
    "zip": ("textbox", "Postcode"),
    "country": ("combobox", "Country"),
    "urgency": ("radio", "Within a week"),
    "pickup": ("checkbox", "Please pick it up"),
    "fault": ("textbox", "What is broken?"),
}


@dataclass(frozen=True, slots=True)
class Route:
    """One server's way of doing a job. A server may have several; the cheapest one counts for it."""

    job: str
    server: str
    way: str
    run: Job


def _all_orders(read: Said) -> None:
    for number in range(ORDERS):
        one = order(number)
        if not all(part in read.text for part in (one.number, one.total, one.state)):
            raise WentWrong(f"order {one.number} was not read")


def _in_cart(shop: Shop, before: int) -> None:
    if shop.carts[before:] != [str(WANTED)]:
        raise WentWrong(f"the cart got {shop.carts[before:]}")


def _repaired(shop: Shop, before: int, shown: Said) -> None:
    if shop.repairs[before:] != [dict(REPAIR)]:
        raise WentWrong(f"the shop got {shop.repairs[before:]}")
    if f"R-{len(shop.repairs):04d}" not in shown.text:
        raise WentWrong("the request number was not read")


# -- Nova


async def _nova(hand: Hand, tool: str, **arguments: Any) -> Said:
    return await hand.server.call(f"nova.{tool}", arguments)


async def _nova_unlisted(hand: Hand, tool: str, **arguments: Any) -> Said:
    return await hand.server.call("nova.call", {"tool": tool, "args": arguments})


async def nova_reads(hand: Hand, shop: Shop) -> None:
    await hand.open(shop.url("orders"))
    read = await _nova(hand, "read_text", maxChars=20_000)
    _all_orders(read)


async def nova_extracts(hand: Hand, shop: Shop) -> None:
    await hand.open(shop.url("orders"))
    _all_orders(await _nova_unlisted(hand, "extract_table"))


async def nova_searches(hand: Hand, shop: Shop) -> None:
    """Finds the article by its name, takes the button out of what is near it."""
    before = len(shop.carts)
    await hand.open(shop.url("shop"))
    seen = await _nova(hand, "perceive", maxTokens=200)
    found = await _nova_unlisted(
        hand,
        "perceive_snapshot_query",
        perceptionId=seen.structured["perceptionId"],
        op="search",
        query=f"Add {NAME}",
        limit=3,
    )
    clicked = await hand.click(hand.mark(found, "button", f"Add {NAME} to cart"))
    _shows(clicked, OUTCOME)
    _in_cart(shop, before)


async def nova_names(hand: Hand, shop: Shop) -> None:
    """Names the button by what it says, as one does who has seen its neighbours."""
    before = len(shop.carts)
    await hand.open(shop.url("shop"))
    clicked = await _nova(hand, "click_selector", selector=f'role=button[name="Add {NAME} to cart"]')
    _shows(clicked, OUTCOME)
    _in_cart(shop, before)


def _shows(said: Said, text: str) -> None:
    if text not in said.text:
        raise WentWrong(f"the answer does not show the outcome: {said.text[:200]}")


def _nova_step(hand: Hand, look: Said, name: str) -> dict[str, Any]:
    role, label = LABELS[name]
    ref = hand.mark(look, role, label)
    match role:
        case "textbox":
            return {"tool": "type_selector", "args": {"ref": ref, "text": REPAIR[name]}}
        case "combobox":
            return {"tool": "choose_option", "args": {"ref": ref, "text": REPAIR[name]}}
        case _:
            return {"tool": "choose_option", "args": {"ref": ref, "checked": True}}


async def nova_fills(hand: Hand, shop: Shop) -> None:
    before = len(shop.repairs)
    await hand.open(shop.url("repair"))
    look = await hand.look()
    steps = [*(_nova_step(hand, look, name) for name in REPAIR), {"tool": "guarded_submit_form"}]
    await _nova_unlisted(hand, "run_sequence", steps=steps)
    _repaired(shop, before, await _nova(hand, "read_text"))


# -- @playwright/mcp


async def playwright_reads(hand: Hand, shop: Shop) -> None:
    await hand.open(shop.url("orders"))
    _all_orders(await hand.look())


async def playwright_evaluates(hand: Hand, shop: Shop) -> None:
    await hand.open(shop.url("orders"))
    _all_orders(await hand.server.call("browser_evaluate", {"function": PAGE_TEXT}))


async def playwright_finds(hand: Hand, shop: Shop) -> None:
    before = len(shop.carts)
    await hand.open(shop.url("shop"))
    found = await hand.server.call("browser_find", {"text": f"Add {NAME}"})
    await hand.click_and_see(hand.mark(found, "button", f"Add {NAME} to cart"), OUTCOME)
    _in_cart(shop, before)


async def playwright_names(hand: Hand, shop: Shop) -> None:
    before = len(shop.carts)
    await hand.open(shop.url("shop"))
    await hand.click_and_see(f'role=button[name="Add {NAME} to cart"]', OUTCOME)
    _in_cart(shop, before)


async def playwright_fills(hand: Hand, shop: Shop) -> None:
    before = len(shop.repairs)
    await hand.open(shop.url("repair"))
    look = await hand.look()
    fields = [
        {
            "name": label,
            "target": hand.mark(look, role, label),
            "type": role,
            "value": "true" if role in ("radio", "checkbox") else REPAIR[name],
        }
        for name, (role, label) in LABELS.items()
    ]
    await hand.server.call("browser_fill_form", {"fields": fields})
    await hand.click(hand.mark(look, "button", "Send request"))
    _repaired(shop, before, await hand.look())


# -- chrome-devtools-mcp


async def _page(server: Server, tool: str, **arguments: Any) -> Said:
    return await server.call(tool, {"pageId": 1, **arguments})


async def devtools_reads(hand: Hand, shop: Shop) -> None:
    await hand.open(shop.url("orders"))
    _all_orders(await hand.look())


async def devtools_evaluates(hand: Hand, shop: Shop) -> None:
    await hand.open(shop.url("orders"))
    _all_orders(await _page(hand.server, "evaluate_script", function=PAGE_TEXT))


async def devtools_finds(hand: Hand, shop: Shop) -> None:
    """It clicks only what it has seen, and it sees only whole pages."""
    before = len(shop.carts)
    await hand.open(shop.url("shop"))
    look = await hand.look()
    await hand.click(hand.mark(look, "button", f"Add {NAME} to cart"))
    status = await _page(
        hand.server, "evaluate_script", function="() => document.querySelector('[role=status]').innerText"
    )
    _shows(status, OUTCOME)
    _in_cart(shop, before)


async def devtools_fills(hand: Hand, shop: Shop) -> None:
    before = len(shop.repairs)
    await hand.open(shop.url("repair"))
    look = await hand.look()
    elements = [
        {
            "uid": hand.mark(look, role, label),
            "value": "true" if role in ("radio", "checkbox") else REPAIR[name],
        }
        for name, (role, label) in LABELS.items()
    ]
    await _page(hand.server, "fill_form", elements=elements)
    sent = await _page(hand.server, "click", uid=hand.mark(look, "button", "Send request"), includeSnapshot=True)
    if not re.search(r"R-\d{4}", sent.text):
        sent = await hand.look()
    _repaired(shop, before, sent)


READ: Final = "read a list page"
FIND: Final = "find and click"
FILL: Final = "fill a form"

ROUTES: Final = (
    Route(READ, "nova", "read_text", nova_reads),
    Route(READ, "nova", "extract_table", nova_extracts),
    Route(READ, "playwright-mcp", "snapshot", playwright_reads),
    Route(READ, "playwright-mcp", "script", playwright_evaluates),
    Route(READ, "devtools-mcp", "snapshot", devtools_reads),
    Route(READ, "devtools-mcp", "script", devtools_evaluates),
    Route(FIND, "nova", "search the snapshot", nova_searches),
    Route(FIND, "nova", "by its name", nova_names),
    Route(FIND, "playwright-mcp", "browser_find", playwright_finds),
    Route(FIND, "playwright-mcp", "by its name", playwright_names),
    Route(FIND, "devtools-mcp", "snapshot", devtools_finds),
    Route(FILL, "nova", "run_sequence", nova_fills),
    Route(FILL, "playwright-mcp", "fill_form", playwright_fills),
    Route(FILL, "devtools-mcp", "fill_form", devtools_fills),
)
