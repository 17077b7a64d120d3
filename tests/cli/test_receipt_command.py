"""The proof of a commit on a terminal, for programs, and when there is none."""

import json

from cli_kit import NOW_MS, Folder, nova, nova_process

from nova_mcp.evidence.model import Caller, ServerId
from nova_mcp.verification.model import Contract
from nova_mcp.verification.receipts import Receipt, ReceiptRequest
from nova_mcp.verification.store import open_transition, settle
from nova_mcp.verification.transitions import NewTransition, Settlement


def commit(folder: Folder, name: str, started_at_ms: int = NOW_MS) -> None:
    new = NewTransition(
        transition_id=name,
        caller=Caller("local", "agent", ServerId("s1")),
        call_id="c1",
        tool_name="nova.guarded_submit_form",
        target_id="tab_1",
        origin="https://shop.test",
        contract=Contract(),
        started_at_ms=started_at_ms,
        element='e3 "Pay\x1b[2J now"',
    )
    assert folder.db.write_sync(open_transition, new)


def settled(folder: Folder, name: str, started_at_ms: int = NOW_MS) -> None:
    commit(folder, name, started_at_ms)
    proof = Receipt(
        transition_id=name,
        tool="nova.guarded_submit_form",
        element='e3 "Pay\x1b[2J now"',
        url_before="https://shop.test/cart",
        url_after="https://shop.test/done",
        requests=(
            ReceiptRequest(method="POST", url="https://shop.test/pay", status=201),
            ReceiptRequest(method="POST", url="https://shop.test/beacon"),
        ),
        appeared=("Thank you",),
        verdict="verified_success",
        started_at_ms=started_at_ms,
        completed_at_ms=started_at_ms + 420,
        contract=("success: page.urlChanged is true",),
        picture_after="shot-1",
    )
    end = Settlement("verified_success", completed_at_ms=started_at_ms + 420, receipt=proof)
    assert folder.db.write_sync(settle, name, end)


def test_the_last_receipt_tells_what_was_sent_seen_and_proven(folder: Folder) -> None:
    settled(folder, "tr_old", NOW_MS - 5_000)
    settled(folder, "tr_new")
    shown = nova("receipt", "--data-dir", folder.path).stdout
    for words in (
        "tr_new",
        "verified",
        "POST https://shop.test/pay → 201",
        "no answer seen",
        "https://shop.test/cart → https://shop.test/done",
        "Thank you",
        "420 ms",
        "success: page.urlChanged is true",
        "nova://screenshot/shot-1",
    ):
        assert words in shown
    assert "tr_old" not in shown
    assert "\x1b" not in shown


def test_a_receipt_is_found_by_its_id_and_read_by_programs(folder: Folder) -> None:
    settled(folder, "tr_old", NOW_MS - 5_000)
    settled(folder, "tr_new")
    body = json.loads(nova("receipt", "tr_old", "--json", "--data-dir", folder.path).stdout)
    assert (body["transitionId"], body["verdict"], body["requests"][0]["status"]) == ("tr_old", "verified_success", 201)


def test_a_commit_nobody_lived_to_judge_still_has_a_receipt_that_says_so(folder: Folder) -> None:
    commit(folder, "tr_1")
    shown = nova("receipt", "last", "--data-dir", folder.path).stdout
    assert "in flight" in shown
    assert folder.db.write_sync(settle, "tr_1", Settlement("indeterminate", "timeout", completed_at_ms=NOW_MS + 1))
    assert "undecided" in nova("receipt", "--data-dir", folder.path).stdout


def test_when_there_is_none_it_is_said_plainly(folder: Folder) -> None:
    none = nova_process("receipt", "--data-dir", folder.path)
    assert (none.returncode, none.stdout) == (1, "")
    assert "no guarded action" in none.stderr
    commit(folder, "tr_1")
    unknown = nova("receipt", "tr_2", "--data-dir", folder.path)
    assert (unknown.exit_code, "there is no receipt tr_2" in unknown.stderr) == (1, True)
