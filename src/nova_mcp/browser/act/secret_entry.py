"""Typing a secret: judged where it would land, and hidden in that field before the first character."""

from dataclasses import replace
from typing import Final

from nova_mcp.browser.act.action import Guard, Scene
from nova_mcp.browser.channel.page_channel import DocumentChanged
from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.perceive.scan_values import answer
from nova_mcp.errors import Precondition
from nova_mcp.secrets.model import Refused, Secret
from nova_mcp.secrets.rules import judge_secret
from nova_mcp.verification.model import Verdict

_GONE: Final = "The field left the page before the secret was typed."


class SecretGuard:
    """Stands before another guard and lets a secret pass only into its own hosts."""

    def __init__(self, inner: Guard, secret: Secret) -> None:
        self._inner = inner
        self._secret = secret
        self._announced = False

    async def admit(self, scene: Scene) -> None:
        await self._hide(scene)
        await self._inner.admit(_hidden(scene))

    async def touch(self, scene: Scene) -> None:
        self._announced = True
        await self._hide(scene)
        await self._inner.touch(_hidden(scene))

    async def commit(self, scene: Scene) -> None:
        # Without Enter this is what goes out before the text; with it the text is in the field already.
        if not self._announced:
            await self._hide(scene)
        await self._inner.commit(_hidden(scene))

    async def follow(self, scene: Scene) -> Verdict | None:
        return await self._inner.follow(scene)

    async def end(self) -> None:
        await self._inner.end()

    async def _hide(self, scene: Scene) -> None:
        match judge_secret(self._secret, scene.tab.url, scene.prepared.url):
            case Refused() as refused:
                raise refused.error()
            case _:
                pass
        try:
            told = answer(await scene.tab.channel.ask("markSecret", {}, frame_id=scene.prepared.frame_id))
        except DocumentChanged:
            raise navigating() from None
        if told["lost"]:
            raise Precondition("action.unstable", _GONE, stage="actionability", action_dispatched=False)


def _hidden(scene: Scene) -> Scene:
    return replace(scene, prepared=replace(scene.prepared, secret=True))
