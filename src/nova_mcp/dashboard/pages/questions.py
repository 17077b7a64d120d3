"""What agents ask people right now, and the answers people give them."""

import re
from dataclasses import dataclass
from typing import Final

import anyio.to_thread

from nova_mcp.core.mailbox import Mailbox
from nova_mcp.core.questions import NOTE_LIMIT, Question, Reply
from nova_mcp.dashboard.context import Desk, Entry, Fragments, Leave, Part, Place, View, Visit
from nova_mcp.dashboard.formatting import plain
from nova_mcp.dashboard.sessions import Notice

# How long after a page last spoke up somebody is taken to be there.
THERE_MS: Final = 30_000
_ID: Final = re.compile(r"[0-9a-f]{8,64}")
_KINDS: Final = {
    "login": "Log in",
    "mfa": "Second factor",
    "captcha": "Solve a check",
    "review": "Look and decide",
    "other": "Do something",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One question as the page shows it."""

    id: str
    kind: str
    why: str
    agent: str
    target: str
    url: str
    asked_at_ms: int
    expires_at_ms: int


def waiting(desk: Desk) -> tuple[Asked, ...]:
    """Who waits for a person, oldest first."""
    return tuple(_asked(one) for one in Mailbox(desk.settings.data_dir).waiting())


def _asked(question: Question) -> Asked:
    return Asked(
        id=question.id,
        kind=_KINDS[question.kind],
        why=plain(question.why),
        agent=plain(question.agent_id),
        target=plain(question.target_id or ""),
        url=plain(question.url or ""),
        asked_at_ms=question.asked_at_ms,
        expires_at_ms=question.expires_at_ms,
    )


async def shown(visit: Visit) -> View:
    asked = await anyio.to_thread.run_sync(waiting, visit.desk)
    return View("review/questions.html", {"title": "Questions", "asked": asked, "note_limit": NOTE_LIMIT})


async def live(visit: Visit) -> Fragments:
    asked = await anyio.to_thread.run_sync(waiting, visit.desk)
    part = Part("list", "review/question_list.html", {"asked": asked, "note_limit": NOTE_LIMIT})
    return Fragments((part,), {"ids": [one.id for one in asked]})


async def answer(visit: Visit) -> Leave:
    """Tell the agent that it is done, or that it is not."""
    wanted, done = visit.field("id"), visit.field("answer")
    if not _ID.fullmatch(wanted) or done not in ("done", "not_done"):
        return Leave("/questions", Notice("That is no answer to a question.", "bad"))
    reply = Reply(resolved=done == "done", by=visit.session.principal, note=visit.said("note", NOTE_LIMIT) or None)
    taken = await anyio.to_thread.run_sync(_reply, visit.desk, wanted, reply)
    return Leave("/questions", taken)


def _reply(desk: Desk, question_id: str, reply: Reply) -> Notice:
    mailbox = Mailbox(desk.settings.data_dir)
    waits = any(one.id == question_id for one in mailbox.waiting())
    try:
        taken = waits and mailbox.reply(question_id, reply)
    except OSError as error:
        return Notice(f"The answer could not be written: {error.strerror or type(error).__name__}.", "bad")
    if not taken:
        return Notice("Nobody waits for this answer any more.", "bad")
    return Notice(
        "The agent was told that it is done." if reply.resolved else "The agent was told that it is not done."
    )


async def here(visit: Visit) -> Fragments:
    """A page is open before somebody's eyes: until it falls silent, agents may ask."""
    mailbox = Mailbox(visit.desk.settings.data_dir)
    await anyio.to_thread.run_sync(mailbox.attend, visit.desk.view, THERE_MS)
    return Fragments()


PLACES = (
    Place("/questions", "questions", get=shown, post=answer, menu=Entry("Now", "Questions")),
    Place("/questions/live", "questions", get=live),
    Place("/here", "", post=here),
)
