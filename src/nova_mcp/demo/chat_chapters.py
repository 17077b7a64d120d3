"""Chapters in the chat: signing in with a password the agent never sees, a message sent once, and one that was not."""

from nova_mcp.core.keywords import some
from nova_mcp.demo.site_answers import PASSWORD, USER
from nova_mcp.demo.stage import Stage

SECRET = "team-chat"  # noqa: S105 - the name of a secret, not the secret
SECRETS_FILE = f'[{SECRET}]\nvalue = "{PASSWORD}"\nhosts = ["chat.localhost"]\n'
HELLO = "The kettle is back in stock."
LOST = "Please order more straw."


def _messages(stage: Stage) -> str:
    return f"{some(len(stage.site.state.messages), 'message')} received"


async def sign_in(stage: Stage) -> None:
    ada = stage.agent("ada")
    await ada.visit(stage.site.url("chat"))
    entered = await ada.call("guarded_login", username=USER, passwordSecret=SECRET)
    posts, inside = stage.site.received("chat", "POST", "/login"), stage.site.state.signed_in
    logged_in = (entered.body.get("auth") or {}).get("loggedIn") is True
    right = entered.verified and logged_in and (posts, inside) == (1, 1) and PASSWORD not in entered.text
    counted = f"{some(posts, 'attempt')}, {some(inside, 'right password')}"
    stage.tell("Signing in with a password the agent never sees", entered.first_line, counted, expected=right)


async def send_a_message(stage: Stage) -> None:
    ada = stage.agent("ada")
    await ada.visit(stage.site.url("chat"))
    sent = await ada.call("guarded_send_message", text=HELLO)
    right = sent.verified and stage.site.state.messages == [HELLO]
    stage.tell("A message to the team", sent.first_line, _messages(stage), expected=right)
    with stage.clock.held():
        again = await ada.call("guarded_send_message", text=HELLO)
    right = again.reason == "guarded_commit.duplicate_suspected" and stage.site.state.messages == [HELLO]
    stage.tell("The same message again, at once and by mistake", again.because, _messages(stage), expected=right)


async def lost_message(stage: Stage) -> None:
    """The chat is down, and its page shows the message all the same."""
    ada = stage.agent("ada")
    stage.site.state.chat_down = True
    await ada.visit(stage.site.url("chat"))
    lost = await ada.call("guarded_send_message", text=LOST)
    shown = (await ada.call("read_text")).text
    stage.site.state.chat_down = False
    failed = lost.commit.get("verificationStatus") == "verified_fail"
    right = failed and LOST in shown and LOST not in stage.site.state.messages
    counted = f"{_messages(stage)} so far; this one was refused with 503, while the page shows it as sent"
    stage.tell("A message that only seems to have gone out", lost.without_advice, counted, expected=right)
