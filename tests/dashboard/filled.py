"""A store with something to see on every page: a month of calls, a commit with a receipt, switches and a question."""

import random
import struct
import zlib
from dataclasses import replace
from typing import Final

from dashboard_kit import HOSTILE, NOW, SERVER, Stand, a_call
from sqlalchemy import Connection

from nova_mcp.calls.model import ResourceContent
from nova_mcp.core.mailbox import Mailbox, this_process
from nova_mcp.core.questions import Question
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, PageState, Signals, Touched
from nova_mcp.evidence.store import append_call
from nova_mcp.memory.journal.collector import NO_HOOKS, collecting
from nova_mcp.memory.journal.statistics.counters import Counters
from nova_mcp.verification.kill_switches import Switch, parse_switch, set_switch
from nova_mcp.verification.model import Contract
from nova_mcp.verification.receipts import Receipt, ReceiptRequest
from nova_mcp.verification.store import open_transition, settle
from nova_mcp.verification.transitions import NewTransition, Settlement

HOUR: Final = 3_600_000
SITES: Final = ("shop.example", "wiki.example", "chat.example", "mail.example")
TOOLS: Final = (
    ("perceive", "read"),
    ("click_selector", "act"),
    ("type_selector", "act"),
    ("navigate", "navigate"),
    ("read_text", "read"),
    ("scroll_smart", "act"),
    ("dismiss_blockers", "act"),
    ("guarded_submit_form", "commit"),
)
COMMIT: Final = "call-commit"
INTENT: Final = "call-intent"


def picture(width: int = 320, height: int = 180, shade: int = 220) -> bytes:
    """A small grey PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + bytes([max(0, shade - y // 2)]) * width for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def recorded(conn: Connection, records: list[CallRecord]) -> None:
    """As a running server records them: ledger, journal and figures in one transaction."""
    collect = collecting(NO_HOOKS, Counters().count)
    for record in records:
        link = append_call(conn, record)
        last = collect(conn, record, link)
        if last is not None:
            last(conn)


def some_calls(count: int, seed: int = 7) -> list[CallRecord]:
    """Calls over a month, most of them in the last day, oldest first."""
    chance = random.Random(seed)
    moments = sorted(
        NOW - (chance.randrange(24 * HOUR) if chance.random() < 0.6 else chance.randrange(29 * 24 * HOUR))
        for _ in range(count)
    )
    return [_some_call(chance, number, at_ms) for number, at_ms in enumerate(moments)]


def _some_call(chance: random.Random, number: int, at_ms: int) -> CallRecord:
    site, (tool, effect) = chance.choice(SITES), chance.choice(TOOLS)
    page = PageState(
        f"t{chance.randrange(1, 4)}", "main", f"https://{site}/item/{chance.randrange(40)}", f"{site}/item/:id", 3
    )
    acting = effect in ("act", "commit")
    luck = chance.random()
    outcome = CallOutcome("ok", action_dispatched=acting or None, verification="verified" if acting else None)
    if luck > 0.97:
        outcome = CallOutcome("blocked_preflight", -32001, "claim.foreign_tab", "claim.owner", action_dispatched=False)
    elif luck > 0.9:
        outcome = CallOutcome(
            "failed",
            -32004,
            "action.no_effect_observed",
            action_dispatched=acting,
            verification="indeterminate" if acting else None,
        )
    return CallRecord(
        call_id=f"call-{number:06d}",
        caller=Caller("local", chance.choice(("default", "researcher", "shopper")), SERVER),
        tool_name=f"nova.{tool}",
        effect=effect,
        started_at_ms=at_ms,
        duration_ms=int(chance.lognormvariate(5, 0.9)),
        outcome=outcome,
        before=page,
        after=page,
        touched=Touched(selector="#buy" if acting else None, flags=frozenset({"target_resolved"})),
        arguments={"selector": "#buy", "text": "hello"} if acting else {},
        signals=Signals(contract="verified_success" if effect == "commit" and luck <= 0.9 else None),
    )


def fill(desk: Stand, calls: int = 400) -> None:
    """Everything at once."""
    desk.db.write_sync(recorded, some_calls(calls))
    desk.db.write_sync(_commit)
    hostile = a_call("call-hostile", at_ms=NOW - 2_000, url=f"javascript:{HOSTILE}", tool_name=f"nova.{HOSTILE}"[:200])
    desk.add(replace(hostile, caller=Caller("local", HOSTILE, SERVER), arguments={HOSTILE: [HOSTILE]}))
    desk.add(
        a_call(
            "call-open",
            at_ms=NOW - 1_000,
            kind="intent",
            outcome=CallOutcome("pending"),
            tool_name="nova.guarded_login",
        )
    )
    for name in ("closed_loop.commit.kill.domain.bank.example", "apply.kill.global"):
        desk.db.write_sync(set_switch, Switch(parse_switch(name), NOW - 3 * HOUR, "ada", HOSTILE))
    ask(desk)
    for which, shade in (("before", 230), ("after", 190)):
        uri = f"nova://screenshot/p-{which}"
        desk.program.resources[uri] = ResourceContent(uri, "image/png", data=picture(shade=shade))


def ask(desk: Stand, question_id: str = "ab12cd34ef", why: str = f"Log in to the shop. {HOSTILE}") -> None:
    Mailbox(desk.settings.data_dir).post(
        Question(
            id=question_id,
            kind="login",
            why=why,
            agent_id="shopper",
            target_id="t1",
            url="https://shop.example/login",
            asked_at_ms=NOW - 8_000,
            expires_at_ms=NOW + 112_000,
            asker=this_process(),
        )
    )


def _commit(conn: Connection) -> None:
    caller, began = Caller("local", "shopper", SERVER), NOW - 40_000
    page = PageState("t1", "main", "https://shop.example/checkout", "shop.example/checkout", 5)
    after = replace(page, url="https://shop.example/thanks", page_epoch=6)
    intent = a_call(INTENT, at_ms=began, kind="intent", outcome=CallOutcome("pending"), effect="commit", caller=caller)
    recorded(conn, [replace(intent, tool_name="nova.guarded_submit_form", before=page, after=PageState())])
    new = NewTransition(
        INTENT,
        caller,
        COMMIT,
        "nova.guarded_submit_form",
        "t1",
        "https://shop.example",
        Contract(),
        began,
        "button “Pay”",
    )
    open_transition(conn, new)
    receipt = Receipt(
        transition_id=INTENT,
        tool="nova.guarded_submit_form",
        element="button “Pay now”",
        url_before="https://shop.example/checkout",
        url_after="https://shop.example/thanks",
        requests=(
            ReceiptRequest(method="POST", url="https://shop.example/api/orders", status=201),
            ReceiptRequest(method="GET", url="https://shop.example/api/cart"),
        ),
        appeared=("Thank you! Your order 1042 was placed.", HOSTILE),
        verdict="verified_success",
        started_at_ms=began,
        completed_at_ms=began + 640,
        contract=("needs: form.valid is true", "success: text Thank you is there", "failure: alert is there"),
        picture_before="p-before",
        picture_after="p-after",
    )
    settle(conn, INTENT, Settlement("verified_success", completed_at_ms=began + 640, receipt=receipt))
    done = a_call(COMMIT, at_ms=began, caller=caller, effect="commit", duration_ms=690, closes=INTENT)
    recorded(conn, [replace(done, tool_name="nova.guarded_submit_form", before=page, after=after)])
