"""Whether a call speaks for the whole of an entry or for one of its steps only; pure.

Otherwise somebody could add a step of their own to what everybody does, and everybody's use would prove it.
"""

from dataclasses import replace
from typing import Final

from nova_mcp.browser.elements import normalize_selector
from nova_mcp.journal.evidence import ObservationKind
from nova_mcp.knowledge.model import Content, DomainHint, Phenomenon
from nova_mcp.promotion.model import Mark

_APPLY: Final = "phenomenon_apply"
_SIGN_IN: Final = "guarded_login"


def controls(content: Content) -> int:
    """How many controls an entry acts through; the same one pressed again is one."""
    actions = () if content.playbook is None else content.playbook.actions
    acting = (one for one in actions if one.mutates)
    return len({normalize_selector(one.selector or f"{one.kind} {one.key}") for one in acting})


def speaks_for(content: Content, tool_name: str, kind: ObservationKind) -> bool:
    """A playbook that was run has done every step; a layer that is gone and a sign-in are judged as a whole."""
    if controls(content) < 2 or kind == "blocker_dismissed":
        return True
    name = tool_name.removeprefix("nova.")
    return name == _APPLY or (name == _SIGN_IN and content.type == "login_wall")


def weighed(kept: Phenomenon | DomainHint, mark: Mark, tool_name: str) -> Mark:
    """The mark as it counts for this entry: one step that worked shows that the thing is there, and no more."""
    if mark.outcome <= 0 or isinstance(kept, DomainHint) or speaks_for(kept.content, tool_name, mark.kind):
        return mark
    return replace(mark, outcome=0)
