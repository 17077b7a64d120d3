"""Every fault of the site: how to act on it, what a truthful answer says, and what the server really did."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Family = Literal["document", "in_page", "login", "chat", "picker", "button", "frame", "plain"]
# Who could know the outcome from the page: `plain` shows it, `hidden` does not (a lost answer, a silent page).
Evidence = Literal["plain", "hidden"]


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call; `{key}` in a text argument stands for the trial's key."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def filled(self, key: str) -> dict[str, Any]:
        return {
            name: value.replace("{key}", key) if isinstance(value, str) else value
            for name, value in self.arguments.items()
        }


@dataclass(frozen=True, slots=True)
class Expected:
    """What the answer may say; several values stand where the contract leaves room. `None` means left out or null."""

    dispatched: bool
    dispatch_status: tuple[str | None, ...]
    verification: tuple[str | None, ...]
    reason_codes: tuple[str | None, ...]
    advice: tuple[str, ...]
    commits: int
    indeterminate: tuple[str | None, ...] = (None,)


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    family: Family
    act: Step
    expected: Expected
    before: tuple[Step, ...] = ()
    evidence: Evidence = "plain"
    # Bounds for the random answer delay of the server and the random pause of the page, in ms.
    delay_ms: tuple[int, int] | None = None
    wait_ms: tuple[int, int] | None = None
    # How often it is drawn when cases are drawn at random; slow ones less.
    weight: int = 4
    # The page of another case, where only the way of acting differs.
    page: str | None = None

    @property
    def path_case(self) -> str:
        return self.page or self.name


SUBMIT: Final = Step("nova.guarded_submit_form", {"selector": "#go"})
LOGIN: Final = Step("nova.guarded_login")
SEND: Final = Step("nova.guarded_send_message", {"text": "Good morning {key}"})
MODEL: Final = Step("nova.guarded_switch_model", {"model": "Thorough"})
WORKSPACE: Final = Step("nova.guarded_switch_sandbox", {"workspace": "Team North"})
NAME: Final = Step("nova.type_selector", {"selector": "#username", "text": "ada"})
RIGHT: Final = Step("nova.type_selector", {"selector": "#password", "text": "open-sesame"})
WRONG: Final = Step("nova.type_selector", {"selector": "#password", "text": "let-me-in"})
PRESS: Final = Step("nova.click_selector", {"selector": "#go"})
MISSING: Final = Step("nova.click_selector", {"selector": "#absent", "timeoutMs": 500})
LOOK: Final = Step("nova.perceive")

FAILED: Final = "guarded_commit.postcondition_failed"
# No answer of the site to read counts as a fact that could not be read: the window then ends in a timeout.
NOTHING_SEEN: Final = ("no_signal_yet", "timeout")
UNREADABLE: Final = ("timeout", "no_signal_yet", "page_navigated", "ambiguous_signal", "eval_error")


def _codes(reasons: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"guarded_commit.{reason}" for reason in reasons)


def saved(commits: int = 1) -> Expected:
    return Expected(True, ("dispatched",), ("verified_success",), (None,), ("do_not_retry",), commits)


def refused() -> Expected:
    return Expected(True, ("dispatched",), ("verified_fail",), (FAILED,), ("do_not_retry",), 0)


def unclear(commits: int, *reasons: str) -> Expected:
    advice = ("check_postcondition_first",)
    return Expected(True, ("dispatched",), ("indeterminate",), _codes(reasons), advice, commits, reasons)


def not_success(*reasons: str) -> Expected:
    """Either the page's own complaint or the missing proof; never success."""
    return Expected(
        True,
        ("dispatched",),
        ("verified_fail", "indeterminate"),
        (FAILED, *_codes(reasons)),
        ("do_not_retry", "check_postcondition_first"),
        0,
        (None, *reasons),
    )


def not_failure(*reasons: str) -> Expected:
    """Done; the page may or may not let one see it in time."""
    return Expected(
        True,
        ("dispatched",),
        ("verified_success", "indeterminate"),
        (None, *_codes(reasons)),
        ("do_not_retry", "check_postcondition_first"),
        1,
        (None, *reasons),
    )


def untouched(reason_code: str, *, dispatch_status: str | None = None) -> Expected:
    return Expected(
        False,
        (dispatch_status,) if dispatch_status else (None, "blocked_precondition"),
        (None, "skipped"),
        (reason_code,),
        ("safe_to_retry",),
        0,
    )


def click(*expect: str, **more: object) -> Step:
    return Step("nova.click_selector", {"selector": "#go", "expect": list(expect), **more})


def count_is(number: int) -> Step:
    shown = {"all": [{"factKey": "dom.#count@text", "operator": "eq", "expected": str(number)}]}
    return Step(
        "nova.click_selector",
        {"selector": "#go", "transitionContract": {"postconditions": {"success": shown}}},
    )


def without_contract(reason_code: str | None, commits: int) -> Expected:
    """A control that commits nothing by its looks: the effect alone speaks."""
    return Expected(True, (None,), (None,), (reason_code,), ("check_postcondition_first",), commits)


_DISMISSED: Final = Expected(
    True,
    ("dispatched",),
    ("indeterminate",),
    ("dialog.confirm_dismissed", "guarded_commit.no_signal_yet"),
    ("check_postcondition_first",),
    0,
    NOTHING_SEEN,
)

CASES: Final[tuple[Case, ...]] = (
    Case("ok_document", "document", SUBMIT, saved(), delay_ms=(0, 400), weight=12),
    Case("ok_page", "document", SUBMIT, saved(), delay_ms=(0, 400), weight=8),
    Case("redirect_chain", "document", SUBMIT, saved(), delay_ms=(0, 300), weight=8),
    Case("slow_redirect", "document", SUBMIT, saved(), weight=2),
    Case("http_500", "document", SUBMIT, refused(), delay_ms=(0, 600)),
    Case("error_text_200", "document", SUBMIT, refused(), delay_ms=(0, 400), weight=8),
    Case("error_text_late", "document", SUBMIT, refused(), delay_ms=(200, 900)),
    # Another address and another document, and all they say is that nothing was done.
    Case("session_ended", "document", SUBMIT, not_success("ambiguous_signal", *NOTHING_SEEN), delay_ms=(0, 400)),
    Case("lost_committed", "document", SUBMIT, unclear(1, *UNREADABLE), evidence="hidden", weight=1),
    Case("lost_uncommitted", "document", SUBMIT, unclear(0, *UNREADABLE), evidence="hidden", weight=1),
    Case("late_answer", "document", SUBMIT, saved(), weight=1),
    Case("silent_204", "document", SUBMIT, unclear(1, *NOTHING_SEEN), evidence="hidden", weight=1),
    Case("ok_fetch", "in_page", SUBMIT, saved(), delay_ms=(0, 500), weight=12),
    Case("fetch_form_gone", "in_page", SUBMIT, saved(), delay_ms=(0, 500), weight=6),
    Case("fetch_204", "in_page", SUBMIT, saved(), delay_ms=(0, 500)),
    Case("fetch_500", "in_page", SUBMIT, refused(), delay_ms=(0, 600)),
    Case("fetch_500_silent", "in_page", SUBMIT, refused(), delay_ms=(0, 600)),
    Case("fetch_500_lies", "in_page", SUBMIT, refused(), delay_ms=(0, 600)),
    Case("fetch_error_200", "in_page", SUBMIT, refused(), delay_ms=(0, 500)),
    Case("fetch_late", "in_page", SUBMIT, not_failure("timeout", "no_signal_yet"), weight=1),
    Case(
        "fetch_lost_committed",
        "in_page",
        SUBMIT,
        unclear(1, "ambiguous_signal", "timeout"),
        evidence="hidden",
        weight=1,
    ),
    Case(
        "fetch_lost_uncommitted",
        "in_page",
        SUBMIT,
        unclear(0, "ambiguous_signal", "timeout"),
        evidence="hidden",
        weight=1,
    ),
    Case("rollback", "in_page", SUBMIT, refused(), wait_ms=(300, 1050)),
    Case("optimistic_revert", "in_page", SUBMIT, refused(), delay_ms=(300, 1500)),
    Case("flicker_success", "in_page", SUBMIT, unclear(0, *NOTHING_SEEN), wait_ms=(20, 300), weight=1),
    Case("flash_error", "in_page", SUBMIT, saved(), wait_ms=(20, 70)),
    Case("spa_route", "in_page", SUBMIT, saved(), delay_ms=(0, 500), weight=6),
    Case("validation", "in_page", SUBMIT, refused()),
    Case(
        "required_empty",
        "document",
        SUBMIT,
        untouched("guarded_commit.precondition_failed", dispatch_status="blocked_precondition"),
    ),
    Case("disabled_submit", "document", SUBMIT, untouched("action.disabled"), weight=2),
    Case("double_overlay", "document", SUBMIT, untouched("action.obstructed"), weight=2),
    Case("throwing", "in_page", SUBMIT, unclear(0, *NOTHING_SEEN), evidence="hidden", weight=1),
    Case("dead", "in_page", SUBMIT, unclear(0, *NOTHING_SEEN), evidence="hidden", weight=1),
    Case("detached", "document", SUBMIT, unclear(0, *NOTHING_SEEN), evidence="hidden", weight=1),
    Case("iframe_target", "frame", SUBMIT, not_failure("no_signal_yet", "ambiguous_signal", "timeout"), weight=1),
    # A selector without a frame is about the page itself.
    Case("iframe_form", "frame", SUBMIT, untouched("selector.not_found"), weight=1),
    Case("login_right", "login", LOGIN, saved(), before=(NAME, RIGHT), weight=5),
    Case("login_wrong", "login", LOGIN, refused(), before=(NAME, WRONG), weight=5),
    Case("login_spa_right", "login", LOGIN, saved(), before=(NAME, RIGHT), delay_ms=(0, 500)),
    Case("login_spa_wrong", "login", LOGIN, refused(), before=(NAME, WRONG), delay_ms=(0, 500)),
    Case("login_mfa", "login", LOGIN, unclear(0, "ambiguous_signal"), before=(NAME, RIGHT), weight=2),
    Case("chat_streams", "chat", SEND, saved(), delay_ms=(0, 600), weight=8),
    Case("chat_silent", "chat", SEND, unclear(0, *NOTHING_SEEN), weight=1),
    Case("chat_swallowed", "chat", SEND, unclear(0, *NOTHING_SEEN), weight=1),
    Case("chat_refused", "chat", SEND, refused(), delay_ms=(0, 600)),
    Case("chat_refused_200", "chat", SEND, not_success("no_signal_yet"), delay_ms=(0, 600), weight=2),
    Case("model_listbox", "picker", MODEL, saved()),
    Case("model_native", "picker", MODEL, saved()),
    Case("model_snaps_back", "picker", MODEL, not_success("no_signal_yet"), wait_ms=(50, 900)),
    Case("workspace_listbox", "picker", WORKSPACE, saved()),
    Case("workspace_snaps_back", "picker", WORKSPACE, not_success("no_signal_yet"), wait_ms=(50, 900)),
    Case("payment_ok", "button", click("text:Payment received"), saved(), delay_ms=(0, 500)),
    Case("payment_declined", "button", click("text:Payment received"), refused(), delay_ms=(0, 500)),
    Case(
        "payment_uncontracted",
        "button",
        PRESS,
        untouched("guarded_commit.missing_contract"),
        page="payment_ok",
    ),
    Case("delete_dismissed", "button", click("text:Account deleted"), _DISMISSED, page="delete_confirm", weight=1),
    Case(
        "delete_accepted",
        "button",
        click("text:Account deleted", onDialog="accept"),
        saved(),
        page="delete_confirm",
    ),
    Case("plain_ok", "plain", PRESS, without_contract(None, 1), delay_ms=(0, 300), weight=6),
    Case("plain_500", "plain", PRESS, without_contract("action.error_signal", 0), delay_ms=(0, 400)),
    Case("plain_error_200", "plain", PRESS, without_contract("action.error_signal", 0), delay_ms=(0, 400)),
    Case("plain_dead", "plain", PRESS, without_contract("action.no_effect_observed", 0), weight=2),
    Case("plain_throws", "plain", PRESS, without_contract("action.no_effect_observed", 0), weight=2),
    Case(
        "plain_late",
        "plain",
        PRESS,
        without_contract("action.request_pending", 1),
        evidence="hidden",
        weight=1,
    ),
    Case("plain_missing", "plain", MISSING, untouched("selector.not_found"), page="plain_ok", weight=2),
    Case("plus_one", "button", count_is(2), saved(2), before=(count_is(1), LOOK), page="plus_one"),
)

BY_NAME: Final[Mapping[str, Case]] = {case.name: case for case in CASES}
