"""Chapters about the shop's cookie banner, which has to be proven more often than anything else before it is known."""

from typing import Any

from nova_mcp.demo.shop_chapters import consents
from nova_mcp.demo.stage import Stage, Told

BANNER = "cookie-banner"


def _entry(button: str) -> dict[str, Any]:
    return {
        "id": BANNER,
        "type": "consent_cmp",
        "fingerprint": {"signals": [{"kind": "dom", "match": "#cookies"}, {"kind": "text", "match": "use cookies"}]},
        "playbook": {
            "policy": "reject_preferred",
            "actions": [{"action": "click", "selector": button, "declaredPolarity": "reject"}],
            "verify": [{"type": "absent", "selector": "#cookies"}],
        },
    }


async def _rejected(stage: Stage) -> Told:
    """A visit to the shop: it asks about cookies, and is told no."""
    ada = stage.agent("ada")
    seen = await ada.visit(stage.site.url("shop"))
    await ada.call("dismiss_blockers")
    return seen


async def write_it_down(stage: Stage) -> None:
    ada, scope = stage.agent("ada"), stage.site.scope("shop")
    await ada.visit(stage.site.url("shop"))
    lie = await ada.call("pks_upsert", scope=scope, phenomenon=_entry("#accept-cookies"))
    right = lie.reason == "pks.polarity_mismatch"
    stage.tell('Knowledge that calls "Accept all" a refusal', lie.because, expected=right)
    stored = await ada.call("pks_upsert", scope=scope, phenomenon=_entry("#reject-cookies"))
    tried = await ada.call("phenomenon_apply", phenomenonId=BANNER, trial=True)
    right = stored.body.get("level") == 1 and tried.reason == "pks.trial_not_allowed" and not tried.touched
    told = f"{stored.first_line} · {tried.because}"
    stage.tell("The right button goes into review, not into practice", told, expected=right)
    await ada.call("dismiss_blockers")


async def once_more(stage: Stage) -> None:
    """One more proof on the way, without a chapter of its own."""
    await _rejected(stage)


async def known(stage: Stage) -> None:
    ada, scope = stage.agent("ada"), stage.site.scope("shop")
    await _rejected(stage)
    decided = await ada.call("learn_promote", scope=scope, stableIds=[BANNER])
    step = (decided.body.get("decisions") or [{}])[0]
    accepted, counted = consents(stage)
    right = step.get("toLevel") == 2 and accepted == 0
    stage.tell("Refused on three days since, the banner is known", decided.flat, counted, expected=right)


async def handled(stage: Stage) -> None:
    ada = stage.agent("ada")
    await ada.visit(stage.site.url("shop"))
    before = stage.site.received("shop", "POST", "/api/consent/rejected")
    done = await ada.call("phenomenon_apply", phenomenonId=BANNER)
    rejected = stage.site.received("shop", "POST", "/api/consent/rejected") - before
    accepted, counted = consents(stage)
    right = done.verified and (rejected, accepted) == (1, 0)
    stage.tell("The banner, handled by what was learned", done.first_line, counted, expected=right)
