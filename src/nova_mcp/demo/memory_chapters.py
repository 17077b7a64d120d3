"""Chapters about what is remembered on purpose: facts, rules of a site, whose tab it is, and claims without proof."""

from nova_mcp.core.keywords import some
from nova_mcp.demo.stage import Stage

RULE = "One kettle per day."
HABIT = "Straw is ordered on Mondays, never on Fridays."


async def facts(stage: Stage) -> None:
    ada = stage.agent("ada")
    tab = str((await ada.visit(stage.site.url("shop", "/stock"))).body.get("targetId"))
    sure = {"signalKey": "core.page.type", "value": "stock", "certainty": "certain", "evidence": "The heading."}
    await ada.call("ok_observe", targetId=tab, claims=[sure])
    weak = {"signalKey": "core.page.type", "value": "shop", "certainty": "tentative"}
    told = await ada.call("ok_observe", targetId=tab, claims=[weak])
    held = await ada.call("ok_facts", keys=["core.page.type"])
    value = [fact["value"] for fact in held.body.get("facts", [])]
    states = [fact["state"] for fact in told.body.get("facts", [])]
    right = value == ["stock"] and states == ["observation_only"]
    stage.tell("A fact, and a guess that can't replace it", held.text.splitlines()[-1], expected=right)


async def rule_of_the_site(stage: Stage) -> None:
    ada, site = stage.agent("ada"), stage.site.url("shop")
    await ada.visit(site)
    await ada.call("dismiss_blockers")
    await ada.call("domain_note", domain=site, key="RULES", value=RULE, enforcement="block")
    before = stage.site.received("shop", "POST", "/api/cart")
    held = await ada.call("click_selector", selector="#add")
    count = stage.site.received("shop", "POST", "/api/cart") - before
    right = held.reason == "acknowledge_required" and count == 0
    counted = f"{some(count, 'kettle')} put into the cart"
    stage.tell("A rule of the site has to be read first", held.because, counted, expected=right)
    await ada.call("domain_note_ack", domain=site, key="RULES")
    clicked = await ada.call("click_selector", selector="#add")
    count = stage.site.received("shop", "POST", "/api/cart") - before
    counted = f"{some(count, 'kettle')} put into the cart"
    stage.tell("Read and acknowledged, the click goes through", clicked.first_line, counted, expected=count == 1)
    await ada.call("domain_note_delete", domain=site, key="RULES")


async def whose_tab(stage: Stage) -> None:
    ada, eve = stage.agent("ada"), stage.agent("eve")
    await ada.visit(stage.site.url("shop", "/stock"))
    mine = await ada.call("tab_claim")
    tab = str(mine.body.get("targetId", ""))
    refused = await eve.call("click_selector", targetId=tab, selector="#alert")
    right = refused.reason == "claim.owner_mismatch" and not refused.touched
    stage.tell("A tab that belongs to another agent", refused.because, expected=right)
    before = await ada.call("perceive", targetId=tab)
    await ada.call("click_selector", targetId=tab, selector="#alert")
    changed = await ada.call("perceive", targetId=tab, sinceRev=before.body.get("rev"))
    right = "Never mind" in changed.text
    stage.tell("Looking again, and reading only what changed", changed.text.splitlines()[-1], expected=right)
    await _claim_without_proof(stage, tab)


async def _claim_without_proof(stage: Stage, tab: str) -> None:
    ada = stage.agent("ada")
    claim = {"component": "stock-alert", "claim": "The alert can be taken back."}
    noted = await ada.call("memory_add_candidate", targetId=tab, **claim)
    done = await ada.call("tab_release", targetId=tab)
    weak = noted.body.get("created") is True and noted.body.get("status") == "unverified"
    right = weak and done.body.get("released") is True and done.body.get("finalizeDecision") == "skip"
    told = f"stored as {noted.body.get('status')}; {done.first_line}"
    stage.tell("An agent's own word is not enough to learn from", told, expected=right)


async def working_rule(stage: Stage) -> None:
    """What one agent has noted is found by another one, by what its task is about."""
    await stage.agent("ada").call("operator_notes_store", content=HABIT, tags=["straw", "orders"])
    told = await stage.agent("dan").call("get_instructions", taskKeywords=["order", "straw"])
    found = [note["content"] for note in told.body.get("operatorNotes") or []]
    quoted = "; ".join(f'"{text}"' for text in found)
    title = "A working rule, told to another agent whose task it fits"
    stage.tell(title, quoted or "no note fits", expected=found == [HABIT])


async def bad_input(stage: Stage) -> None:
    eve = stage.agent("eve")
    wrong = await eve.call("navigate", url="javascript:alert(1)")
    stage.tell("A javascript: address", wrong.because, expected=wrong.reason == "policy.scheme_denied")
    wrong = await eve.call("perceive", maxTokens="many")
    stage.tell("A wrong argument", wrong.because, expected=wrong.reason == "invalid_params")
