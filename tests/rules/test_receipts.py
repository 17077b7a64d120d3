"""Receipts: kept whole, told in one line."""

from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.verification.receipts import (
    LINE_CHARS,
    Receipt,
    ReceiptRequest,
    receipt_from_json,
    receipt_line,
    receipt_to_json,
)

texts = st.text(max_size=400)
requests = st.fixed_dictionaries({"method": st.just("POST"), "url": texts, "status": st.none() | st.integers(100, 599)})
receipts = st.fixed_dictionaries(
    {
        "transition_id": st.just("tr_0123456789abcdef0123"),
        "tool": st.sampled_from(["nova.click_selector", "nova.guarded_submit_form"]),
        "element": texts,
        "url_before": texts,
        "url_after": texts,
        "requests": st.lists(requests.map(lambda fields: ReceiptRequest(**fields)), max_size=3).map(tuple),
        "appeared": st.lists(texts, max_size=3).map(tuple),
        "verdict": st.sampled_from(["verified_success", "verified_fail", "indeterminate"]),
        "reason": st.none() | st.just("no_signal_yet"),
        "started_at_ms": st.integers(0, 10**13),
        "completed_at_ms": st.none() | st.integers(0, 10**13),
        "contract": st.lists(texts, max_size=3).map(tuple),
    }
).map(lambda fields: Receipt(**fields))


@given(receipts)
def test_a_receipt_is_read_back_as_it_was_kept(receipt: Receipt) -> None:
    kept = receipt_to_json(receipt)
    assert receipt_from_json(kept) == receipt
    assert "\x00" not in kept
    assert kept.isascii()


@given(receipts)
def test_the_line_is_one_short_line_that_ends_with_the_verdict_and_the_id(receipt: Receipt) -> None:
    line = receipt_line(receipt)
    assert len(line.splitlines()) == 1
    assert len(line) <= LINE_CHARS
    assert receipt.verdict in line
    assert line.endswith(f"receipt {receipt.transition_id}")


def test_the_line_says_what_was_pressed_sent_and_seen() -> None:
    receipt = Receipt(
        transition_id="tr_1",
        tool="nova.guarded_submit_form",
        element='e3 "Save"',
        requests=(
            ReceiptRequest(method="POST", url="https://shop.test/api/save?token=1", status=201),
            ReceiptRequest(method="PUT", url="https://shop.test/log"),
        ),
        appeared=("Saved", "more"),
        verdict="indeterminate",
        reason="timeout",
        started_at_ms=0,
    )
    assert receipt_line(receipt) == (
        'guarded_submit_form e3 "Save" · POST /api/save 201 · PUT /log no answer · "Saved" · indeterminate (timeout)'
        " · receipt tr_1"
    )


def test_a_field_of_a_later_version_does_not_lose_the_receipt() -> None:
    kept = '{"transitionId":"t","tool":"x","verdict":"verified_success","startedAtMs":1,"mood":"fine"}'
    assert receipt_from_json(kept).transition_id == "t"
