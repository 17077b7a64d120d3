"""Chapters in the shop: consent, a click with its effect, orders sent once, and a page that is not believed."""

import json
from typing import Any
from urllib.parse import urlsplit

from nova_mcp.core.keywords import some
from nova_mcp.demo.site import PracticeSite
from nova_mcp.demo.stage import Agent, Stage, Told

ORDER: dict[str, Any] = {"selector": "#order", "expect": ["text:Order received"]}


def _count(stage: Stage, path: str) -> int:
    return stage.site.received("shop", "POST", path)


def consents(stage: Stage) -> tuple[int, str]:
    """How often the shop was allowed to measure its visitors, and the same in words."""
    rejected, accepted = (_count(stage, f"/api/consent/{choice}") for choice in ("rejected", "accepted"))
    return accepted, f"{some(rejected, 'refusal')} and {some(accepted, 'consent')} received"


async def consent(stage: Stage) -> None:
    ada = stage.agent("ada")
    seen = await ada.visit(stage.site.url("shop"))
    kinds = [blocker["kind"] for blocker in seen.body.get("blockers", [])]
    gone = await ada.call("dismiss_blockers")
    accepted, counted = consents(stage)
    rejected = _count(stage, "/api/consent/rejected")
    right = kinds == ["consent"] and gone.body.get("consentChoice") == "rejected" and (rejected, accepted) == (1, 0)
    stage.tell("A cookie banner covers the shop, and is refused", gone.first_line, counted, expected=right)


async def act(stage: Stage) -> None:
    ada = stage.agent("ada")
    clicked = await ada.call("click_selector", selector="#add")
    count = _count(stage, "/api/cart")
    right = clicked.touched and clicked.body.get("verifyState") == "likely" and count == 1
    counted = f"{some(count, 'kettle')} put into the cart"
    stage.tell("A click, and what it did", clicked.first_line, counted, expected=right)
    typed = await ada.call("type_selector", selector="#search", text="kettle")
    await ada.call("input_key", key="Enter", expect=["url:/search*"])
    asked = stage.site.state.searches
    counted = f"searched for {', '.join(asked) or 'nothing'}"
    right = typed.verified and asked == ["kettle"]
    stage.tell("Typing, read back before it is sent", typed.first_line, counted, expected=right)
    await ada.call("navigate", url=stage.site.url("shop", "/stock"))
    found = await ada.call("extract_table")
    rows = (found.body.get("tables") or [{}])[0].get("rows", [])
    told = "; ".join(", ".join(map(str, row)) for row in rows)
    right = rows == [["Kettle", "12", "29.00"], ["Lamp", "3", "18.50"]]
    stage.tell("A table, as rows", told, expected=right)


async def covered_button(stage: Stage) -> None:
    ada = stage.agent("ada")
    await ada.visit(stage.site.url("shop", "/offer"))
    before = _count(stage, "/api/cart")
    refused = await ada.call("click_selector", selector="#add", timeoutMs=500)
    added, veiled = _count(stage, "/api/cart") - before, _count(stage, "/api/veil")
    right = refused.reason == "action.obstructed" and not refused.touched and (added, veiled) == (0, 0)
    counted = f"{some(added, 'kettle')} put into the cart, {some(veiled, 'click')} taken by the layer"
    stage.tell("A button under an invisible layer", f"{refused.because} Nothing was clicked.", counted, expected=right)


def _orders(stage: Stage) -> str:
    return f"{some(stage.site.state.orders, 'order')} received"


async def order(stage: Stage) -> None:
    """Not without saying what would prove it; then once, with a receipt; and not a second time by accident."""
    ada = stage.agent("ada")
    await ada.visit(stage.site.url("shop", "/checkout"))
    blocked = await ada.call("click_selector", selector="#order")
    right = blocked.reason == "guarded_commit.missing_contract" and stage.site.state.orders == 0
    stage.tell("An order without a word on what would prove it", blocked.because, _orders(stage), expected=right)
    steps = [{"actionDesc": "Fill in the name"}, {"actionDesc": "Place the order"}]
    goal = (await ada.call("goal_register", op="create", summary="Order one green kettle", steps=steps)).body.get(
        "goal"
    )
    await ada.call("type_selector", selector="#name", text="Ada")
    done = await ada.call("click_selector", **ORDER)
    right = done.verified and stage.site.state.orders == 1
    stage.tell("The same order, with its proof named", done.first_line, _orders(stage), expected=right)
    with stage.clock.held():
        again = await repeat_the_order(ada, stage.site)
    right = again.reason == "guarded_commit.duplicate_suspected" and stage.site.state.orders == 1
    stage.tell("The agent orders again at once, without a look", again.because, _orders(stage), expected=right)
    await _receipt(stage, ada, done)
    await _goal_reached(stage, ada, str((goal or {}).get("goalId")))


async def repeat_the_order(agent: Agent, site: PracticeSite) -> Told:
    """The same form with the same words in it."""
    await agent.call("navigate", url=site.url("shop", "/checkout"))
    await agent.call("type_selector", selector="#name", text="Ada")
    return await agent.call("click_selector", **ORDER)


async def _receipt(stage: Stage, ada: Agent, done: Told) -> None:
    number = done.commit.get("transitionId")
    proof = json.loads(await ada.read(f"nova://receipt/{number}"))
    sent = [
        f"POST {urlsplit(one['url']).path} → {one['status']}" for one in proof["requests"] if one["method"] == "POST"
    ]
    pictures = sum(proof.get(when) is not None for when in ("pictureBefore", "pictureAfter"))
    parts = [proof["verdict"], *sent, *(f"agreed: {line}" for line in proof["contract"][:1])]
    told = " · ".join([*parts, f"{some(pictures, 'picture')}, before and after", f"receipt {number}"])
    right = proof["verdict"] == "verified_success" and pictures == 2 and len(sent) == 1
    stage.tell("Its receipt, for whoever asks later", told, expected=right)


async def _goal_reached(stage: Stage, ada: Agent, goal_id: str) -> None:
    stands = await ada.call("goal_register", op="query", goalId=goal_id)
    steps = (stands.body.get("goal") or {}).get("steps") or []
    done = [step.get("status") for step in steps]
    closed = await ada.call("goal_register", op="close", goalId=goal_id, state="completed")
    right = done == ["done", "done"] and closed.body.get("ok") is True
    stage.tell("The goal it was a step of", stands.flat, expected=right)


async def lying_page(stage: Stage) -> None:
    ada = stage.agent("ada")
    await ada.visit(stage.site.url("shop", "/profile"))
    saved = await ada.call("guarded_submit_form")
    shown = (await ada.call("read_text")).text
    right = saved.commit.get("verificationStatus") == "verified_fail" and "Profile saved." in shown
    tries = _count(stage, "/api/profile")
    counted = f'{some(tries, "attempt")}, refused with 500, while the page says "Profile saved."'
    title = "A page says it worked when it did not"
    stage.tell(title, saved.without_advice, counted, expected=right and tries == 1)
