"""Contracts that Nova writes itself: for its guarded macros, and as a start for agents that met a commit point."""

from typing import Final, Literal

from nova_mcp.core.values import Json
from nova_mcp.verification.model import Assertion, AssertionSet, Contract

ERROR_SHOWN: Final = Assertion("form.errorBanner.visible", "eq", expected=True)


def _is(key: str, value: Json = True) -> Assertion:
    return Assertion(key, "eq", value)


# A message that warns, or that can't be read, speaks neither for nor against what was sent.
WARNED: Final = Assertion("form.warningBanner.visible", "eq", expected=True)
UNREAD: Final = Assertion("form.noticeUnclear.visible", "eq", expected=True)
_CHANGING: Final = ("POST", "PUT", "PATCH", "DELETE")


def submit_form(route: str, dom_epoch: int, control: str | None) -> Contract:
    """A form that was accepted says so, or is gone once the site has answered what was sent.

    Another address or another document proves nothing: sites redirect with "does not exist" and "was changed by
    another user" just as well. What only led on without a word is likely at most.
    """
    moved, new_document = _is("page.urlChanged"), Assertion("runtime.domEpoch", "gt", dom_epoch)
    # Being sent to sign in is what sites do when a session has ended, and also after signing up: it proves neither.
    turned_away = _is("auth.loginWallVisible")
    answered = AssertionSet(any=tuple(Assertion(f"network.response@{way}%20*", "lt", 400) for way in _CHANGING))
    gone = (_is("form.gone"), *((_is(f"dom.{control}@gone"),) if control is not None else ()))
    return Contract(
        action_kind="submit_form",
        preconditions=AssertionSet(all=(_is("form.fields.valid"),)),
        success=AssertionSet(
            either=(
                AssertionSet(all=(_is("form.successIndicator.visible"),), forbidden=(WARNED,)),
                AssertionSet(all=gone, forbidden=(WARNED, UNREAD, turned_away), also=(answered,)),
                # What asks for a page has what it wanted when the page is there.
                AssertionSet(all=(_is("form.isQuery"), moved, new_document), forbidden=(WARNED, UNREAD, turned_away)),
            )
        ),
        forbidden=AssertionSet(any=(ERROR_SHOWN,)),
        ambiguous=AssertionSet(any=(turned_away, WARNED, UNREAD)),
        likely=AssertionSet(
            either=(
                AssertionSet(all=(new_document,), also=(answered,)),
                AssertionSet(all=(moved, Assertion("page.route", "not_eq", route))),
            )
        ),
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
    """For any other commit: the page says that it worked, or no longer offers the control, and nothing warns."""
    gone = (_is(f"dom.{control}@gone"),) if control is not None else ()
    return Contract(
        success=AssertionSet(any=(_is("form.successIndicator.visible"), *gone), forbidden=(WARNED, UNREAD)),
        forbidden=AssertionSet(any=(ERROR_SHOWN,)),
    )
