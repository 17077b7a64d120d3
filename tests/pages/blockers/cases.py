"""Every page of this folder: what lies over it, what each mode must come to, and which choice is stored then."""

from dataclasses import dataclass, field
from typing import Final

# What may be pressed at all; everything else on these pages accepts, commits or is not understood.
HARMLESS: Final = frozenset({"reject", "necessary", "close", "manage", "save"})


@dataclass(frozen=True, slots=True)
class Expected:
    """The answer: `reason` None is ok; `stored` is what the page itself wrote down."""

    reason: str | None = None
    dismissed: int = 0
    choice: str = "unknown"
    stored: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    page: str
    kinds: tuple[str, ...] = ()
    blocking: tuple[bool, ...] = ()
    controls: frozenset[str] = field(default_factory=frozenset)
    conservative: Expected = field(default_factory=Expected)
    aggressive: Expected | None = None

    @property
    def in_aggressive(self) -> Expected:
        return self.aggressive or self.conservative


REJECTED: Final = Expected(None, 1, "rejected", "reject")
CLOSED: Final = Expected(None, 1, "unknown", "closed")
PERSON: Final = Expected("blockers.needs_human")
HIDDEN: Final = Expected("blockers.hidden_only")
STUCK: Final = Expected("action.no_effect_observed", stored="reject")


def _c(*names: str) -> frozenset[str]:
    return frozenset(names)


_CONSENT: Final = ("consent",)
CASES: Final[tuple[Case, ...]] = (
    Case("en_bar", _CONSENT, (False,), _c("accept", "manage", "reject"), REJECTED),
    Case("de_cover", _CONSENT, (True,), _c("accept", "manage", "reject"), REJECTED),
    Case("fr_continue", _CONSENT, (True,), _c("accept", "manage", "reject"), REJECTED),
    Case("es_cover", _CONSENT, (True,), _c("accept", "manage", "reject"), REJECTED),
    Case("accept_necessary", _CONSENT, (True,), _c("accept", "reject"), REJECTED),
    Case("accept_necessary_decoy", _CONSENT, (True,), _c("accept"), PERSON, HIDDEN),
    Case("shadow", _CONSENT, (False,), _c("accept", "reject"), REJECTED),
    Case("framed", ("unknown",), (True,), _c(), REJECTED),
    Case("framed_elsewhere", ("unknown",), (True,), _c(), REJECTED),
    Case("second_reject", _CONSENT, (True,), _c("accept", "manage"), REJECTED),
    Case("second_switches", _CONSENT, (True,), _c("accept", "manage"), REJECTED),
    Case("second_radios", _CONSENT, (True,), _c("accept", "manage"), REJECTED),
    Case("second_stuck", _CONSENT, (True,), _c("accept", "manage"), PERSON, HIDDEN),
    Case("accept_only", _CONSENT, (False,), _c("accept"), PERSON, HIDDEN),
    Case("decoy_close", _CONSENT, (False,), _c("accept"), PERSON, HIDDEN),
    Case("closing_accepts", _CONSENT, (False,), _c("accept"), PERSON, HIDDEN),
    Case("standing"),
    Case("wall", _CONSENT, (True,), _c("accept"), PERSON, HIDDEN),
    Case("newsletter", ("newsletter",), (True,), _c("close"), CLOSED),
    Case("newsletter_submit", ("newsletter",), (True,), _c("close"), CLOSED),
    Case("login", ("login_wall",), (True,), _c("close"), PERSON),
    Case("paywall", ("paywall",), (True,), _c("close"), PERSON),
    Case("age", ("age_gate",), (True,), _c("accept"), PERSON),
    Case("age_de", ("age_gate",), (True,), _c("accept"), PERSON),
    Case("challenge", ("challenge",), (True,), _c(), PERSON),
    Case("challenge_layer", ("challenge",), (True,), _c(), PERSON),
    Case("chat_bubble"),
    Case("chat_window", ("chat",), (False,), _c("close"), CLOSED),
    Case("site_modal", ("modal",), (True,), _c(), Expected(None, 1)),
    Case("site_alert", ("modal",), (True,), _c(), PERSON, HIDDEN),
    Case("site_dialog", ("modal",), (True,), _c("close"), CLOSED),
    Case("site_decline", ("modal",), (True,), _c("accept", "reject"), CLOSED),
    Case("stays", _CONSENT, (True,), _c("accept", "reject"), STUCK, Expected("blockers.hidden_only", stored="reject")),
    Case(
        "comes_back",
        _CONSENT,
        (True,),
        _c("accept", "reject"),
        STUCK,
        Expected("blockers.hidden_only", stored="reject"),
    ),
    Case("fades", _CONSENT, (True,), _c("accept", "reject"), REJECTED),
    Case("native_trap", _CONSENT, (True,), _c("accept"), PERSON, HIDDEN),
    Case("onetrust", _CONSENT, (False,), _c("accept", "reject"), REJECTED),
    Case("onetrust_swapped", _CONSENT, (False,), _c("accept"), PERSON, HIDDEN),
    Case("form_post", _CONSENT, (False,), _c("accept", "reject"), Expected(None, 1, "rejected", "reject")),
    Case("services", _CONSENT, (True,), _c("accept", "reject"), REJECTED),
    Case("veil", ("unknown",), (True,), _c(), PERSON, HIDDEN),
    Case("orders", ("unknown",), (True,), _c("close"), CLOSED),
    Case("policy_text"),
)
