"""Contracts that Nova writes itself: for its guarded macros, and as a start for agents that met a commit point."""

from typing import Final, Literal

from nova_mcp.observation.model import Json
from nova_mcp.verification.model import Assertion, AssertionSet, Contract

ERROR_SHOWN: Final = Assertion("form.errorBanner.visible", "eq", expected=True)


def _is(key: str, value: Json = True) -> Assertion:
    return Assertion(key, "eq", value)


def submit_form(route: str, dom_epoch: int, control: str | None) -> Contract:
    """A form that leads on, says so, or is gone once the site has answered.

    An address that changed proves something only together with another document or another route: a form that comes
    back with errors often changes its query alone.
    """
    moved = _is("page.urlChanged")
    # Being sent to sign in is what sites do when a session has ended, and also after signing up: it proves neither.
    turned_away = _is("auth.loginWallVisible")
    answered = Assertion("network.responseOk@*", "lt", 400)
    gone = (AssertionSet(all=(_is(f"dom.{control}@gone"), answered)),) if control is not None else ()
    return Contract(
        action_kind="submit_form",
        preconditions=AssertionSet(all=(_is("form.fields.valid"),)),
        success=AssertionSet(
            either=(
                AssertionSet(all=(moved, Assertion("runtime.domEpoch", "gt", dom_epoch)), forbidden=(turned_away,)),
                AssertionSet(all=(moved, Assertion("page.route", "not_eq", route)), forbidden=(turned_away,)),
                AssertionSet(all=(_is("form.successIndicator.visible"),)),
                *gone,
            )
        ),
        forbidden=AssertionSet(any=(ERROR_SHOWN,)),
        ambiguous=AssertionSet(any=(turned_away,)),
        fresh_only=True,
    )


def login() -> Contract:
    return Contract(
        action_kind="submit_form",
        preconditions=AssertionSet(all=(_is("auth.loginWallVisible"),)),
        success=AssertionSet(all=(_is("auth.loggedIn"),)),
        forbidden=AssertionSet(any=(_is("auth.authError"),)),
        ambiguous=AssertionSet(
            any=(_is("auth.mfaChallenge"), _is("auth.stage", "identity_step"), _is("auth.stage", "federated_login"))
        ),
        fresh_only=True,
    )


def send_message() -> Contract:
    """The box is empty again and the conversation shows it: the own words, a reply, or one on its way."""
    return Contract(
        action_kind="send_message",
        success=AssertionSet(
            all=(_is("composer.textEmpty"),),
            any=(
                _is("chat.sentTextAppeared"),
                _is("chat.outboundMessageAppeared"),
                _is("chat.assistantTurnCreated"),
                _is("chat.streamActive.started"),
            ),
        ),
        forbidden=AssertionSet(any=(ERROR_SHOWN,)),
        fresh_only=True,
    )


def switch(what: Literal["model", "sandbox"], label: str) -> Contract:
    return Contract(
        action_kind="select_option",
        success=AssertionSet(all=(_is(f"{what}.selected", label),)),
        forbidden=AssertionSet(any=(ERROR_SHOWN,)),
        retry_policy="idempotent",
        fresh_only=True,
    )


def starter(control: str | None) -> Contract:
    """For any other commit: the page moves on, says that it worked, or no longer offers the control."""
    gone = (_is(f"dom.{control}@gone"),) if control is not None else ()
    return Contract(
        success=AssertionSet(any=(_is("page.urlChanged"), _is("form.successIndicator.visible"), *gone)),
        forbidden=AssertionSet(any=(ERROR_SHOWN,)),
    )


def starter_expect(control: str) -> list[str]:
    """The same in few words, good enough to be sent as it stands."""
    return [f"gone:{control}", "!visible:[role=alert]"]
