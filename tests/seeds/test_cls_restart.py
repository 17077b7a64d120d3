"""A commit that one server verified and another one is asked for again."""

from pathlib import Path

from loop_kit import Shop, serving, shop

PAGE = """<!doctype html><title>Shop</title><main><form method=post action=/order>
<label>Item <input name=item value=Tea></label><button id=go>Order now</button></form></main>"""


async def order(agent, here: Shop):
    await agent.call("navigate", url=here.url("/"))
    return await agent.call("guarded_submit_form", selector="#go")


async def test_what_the_last_server_verified_is_not_repeated_unseen(tmp_path: Path) -> None:
    with shop() as here:
        here.pages["/"] = PAGE
        async with serving(tmp_path) as agent:
            assert (await order(agent, here))["verifyState"] == "verified"
        async with serving(tmp_path) as agent:
            agent.clock.shift_ms = 60_000
            refused = await order(agent, here)
            assert refused["reasonCode"] == "guarded_commit.duplicate_suspected"
            assert refused["actionDispatched"] is False
            assert here.posted["/order"] == 1
            await agent.call("perceive")
            assert (await agent.call("guarded_submit_form", selector="#go"))["verifyState"] == "verified"
            assert here.posted["/order"] == 2
            agent.clock.shift_ms = 75_000
            assert (await order(agent, here))["verifyState"] == "verified"
            assert here.posted["/order"] == 3
        async with serving(tmp_path) as agent:
            agent.clock.shift_ms = 75_000 + 601_000
            assert (await order(agent, here))["verifyState"] == "verified"
            assert here.posted["/order"] == 4
