"""What a call proves about an entry: the whole of it, one of its steps, or nothing; pure.

A single step's success does not prove an entry of several steps. Otherwise an attacker could append a step to what
everybody does, and everybody's use would prove it.
"""

from dataclasses import replace
from typing import Final

from nova_mcp.core.page.selectors import normalize_selector
from nova_mcp.memory.journal.evidence import ObservationKind
from nova_mcp.memory.knowledge.apply_rules import inapplicable
from nova_mcp.memory.knowledge.matching.routes import restricts
from nova_mcp.memory.knowledge.model import SHADOW, Content, DomainHint, Phenomenon
from nova_mcp.memory.promotion.model import Mark, Proof

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
    """The mark as it counts for this entry: one step that worked shows that the thing is there, and no more. What is
    never applied is not proven by others doing it."""
    if mark.outcome <= 0 or isinstance(kept, DomainHint):
        return mark
    proven = speaks_for(kept.content, tool_name, mark.kind) and inapplicable(kept.content) is None
    return mark if proven else replace(mark, outcome=0)


# -- how an entry can be proven

_SHOWN_CHARS: Final = 80
_NEVER: Final = {
    "pks.accept_refused": "It gives consent, which Nova never does: nova.pks_patch it with the control that refuses.",
    "pks.empty_playbook": "It does nothing, so no use proves it: nova.pks_patch it with a playbook that acts.",
}
_PASSIVE: Final = "Nothing that a page shows proves what is an advertisement or noise: this hint stays in review."


def proof_of(kept: Phenomenon | DomainHint) -> Proof:
    """What an agent has to do so that the evidence counts for this entry."""
    if isinstance(kept, DomainHint):
        if kept.kind != "result_item":
            return Proof(_PASSIVE, possible=False)
        named = _quoted(kept.selectors[0])
        return Proof(f"act on entries of the list {named} with expect (nova.click_selector on a control in one).")
    problem = inapplicable(kept.content)
    if problem is not None or controls(kept.content) == 0:
        return Proof(_NEVER["pks.empty_playbook" if problem is None else problem.code], possible=False)
    return Proof(_way(kept) + _where(kept.content), unseen=kept.unseen)


def _way(kept: Phenomenon) -> str:
    content, (control, alone) = kept.content, _control(kept.content)
    if alone and control is not None:
        tool = "nova.type_selector" if _types(content) else "nova.click_selector with expect"
        return f"act through {_quoted(control)} with proof ({tool})"
    if content.type == "login_wall":
        return "sign in through it with nova.guarded_login"
    if content.type == "consent_cmp":
        return "have it answered by nova.dismiss_blockers"
    if kept.deprecated or kept.level < SHADOW:
        return "store it with nova.pks_upsert on a page that shows it, then nova.phenomenon_apply with trial:true"
    return "nova.phenomenon_apply with trial:true, which proves its steps together"


def _control(content: Content) -> tuple[str | None, bool]:
    """The first control of an entry that has a selector, and whether it is the only thing the entry acts through."""
    actions = () if content.playbook is None else content.playbook.actions
    named = [one.selector for one in actions if one.mutates and one.selector is not None]
    return (named[0] if named else None), controls(content) == 1


def _types(content: Content) -> bool:
    actions = () if content.playbook is None else content.playbook.actions
    return any(one.kind == "type" for one in actions)


def _where(content: Content) -> str:
    routes = content.context.routes
    return f" on {', '.join(routes[:3])}." if restricts(routes) else "."


def _quoted(selector: str) -> str:
    return f'"{selector[:_SHOWN_CHARS]}"'
