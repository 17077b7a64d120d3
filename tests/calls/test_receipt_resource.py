"""A receipt is read by its address, by the principal whose commit it proves."""

import json
from pathlib import Path

from nova_mcp.calls.stored_resources import Resources
from nova_mcp.evidence.model import Caller, ServerId
from nova_mcp.server.resources import TEMPLATES, is_readable
from nova_mcp.storage.engine import Database
from nova_mcp.verification.model import Contract
from nova_mcp.verification.receipts import Receipt
from nova_mcp.verification.store import open_transition, settle
from nova_mcp.verification.transitions import NewTransition, Settlement

ADDRESS = "nova://receipt/tr_1"


async def test_a_receipt_is_shown_only_to_the_principal_it_belongs_to(tmp_path: Path) -> None:
    with Database.open(f"sqlite:///{tmp_path / 'nova.db'}") as db:
        caller = Caller("ada", "agent", ServerId("s1"))
        new = NewTransition(
            "tr_1", caller, "c1", "nova.click_selector", "tab_1", "https://shop.test", Contract(), 1_000
        )
        db.write_sync(open_transition, new)
        proof = Receipt(
            transition_id="tr_1", tool="nova.click_selector", verdict="verified_success", started_at_ms=1_000
        )
        db.write_sync(settle, "tr_1", Settlement("verified_success", completed_at_ms=2_000, receipt=proof))
        resources = Resources(db, tmp_path)
        shown = await resources.read(ADDRESS, "ada")
        assert shown is not None
        assert shown.text is not None
        assert (shown.mime_type, json.loads(shown.text)["verdict"]) == ("application/json", "verified_success")
        assert await resources.read(ADDRESS, "bob") is None
        assert await resources.read("nova://receipt/tr_2", "ada") is None


def test_receipts_are_among_the_addresses_clients_are_told() -> None:
    assert "nova://receipt/{id}" in [template.uri_template for template in TEMPLATES]
    assert is_readable(ADDRESS)
    assert not is_readable("nova://receipt/")
