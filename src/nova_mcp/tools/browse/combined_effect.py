"""What several actions of one call were seen to do, told as one."""

from collections.abc import Sequence
from typing import Final

from nova_mcp.browser.act.action_report import ActionReport, Effect, EffectRequest
from nova_mcp.tools.results import DispatchProof, EffectSeen, RequestSeen

# The best proof first.
DISPATCH_PROOFS: Final[tuple[DispatchProof, ...]] = ("event", "host", "assumed", "none")
_FOCUS: Final = "focus_moved"
_SHOWN: Final = 3
_REQUESTS: Final = 5


def changes_page(effect: Effect) -> bool:
    """Whether more happened than that something else has the focus now."""
    return bool(effect.observed and (effect.new_text or set(effect.channels) - {_FOCUS}))


def merged_effect(reports: Sequence[ActionReport]) -> EffectSeen:
    """Everything that was seen to happen, of all that was pressed."""
    seen = [report.effect.observed for report in reports]
    channels = dict.fromkeys(channel for report in reports for channel in report.effect.channels)
    texts = dict.fromkeys(text for report in reports for text in report.effect.new_text)
    requests = [request for report in reports for request in report.effect.requests]
    return EffectSeen(
        observed=True if True in seen else None if None in seen else False,
        channels=list(channels),
        new_text=list(texts)[:_SHOWN],
        requests=[request_seen(one) for one in requests[:_REQUESTS]],
        window_ms=sum(report.effect.window_ms for report in reports),
    )


def request_seen(one: EffectRequest) -> RequestSeen:
    status = one.status if isinstance(one.status, int) else None
    return RequestSeen(method=one.method, path=one.path, status=status, pending=one.status == "pending")
