"""What can be read by address: one call's evidence, a screenshot, the receipt of one commit, a site's playbook."""

import json
import re
from pathlib import Path
from urllib.parse import unquote

import anyio.to_thread

from nova_mcp.browser.read.screenshot import receipt_shelf, screenshot_shelf
from nova_mcp.calls.endings import store_failed
from nova_mcp.calls.model import ResourceContent
from nova_mcp.core.hosts import normalize_host
from nova_mcp.evidence.rules import canonical_body
from nova_mcp.evidence.store import StoredCall, get_call
from nova_mcp.memory.notes.domain_store import notes_of
from nova_mcp.memory.notes.model import EVERYBODY
from nova_mcp.memory.notes.playbook import PLAYBOOK_KEY
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.browse.screenshot import shelf_mark
from nova_mcp.verification.receipts import receipt_to_json
from nova_mcp.verification.store import find_transition

_ADDRESS = re.compile(r"nova://(?P<kind>ledger|screenshot|receipt)/(?P<name>[A-Za-z0-9_-]{1,64})")
_PLAYBOOK = re.compile(r"nova://playbook/(?P<scope>[^/?#\s]{1,300})")


class Resources:
    """Reads what an address names; nothing for what the principal may not see."""

    def __init__(self, db: Database, data_dir: Path) -> None:
        self._db = db
        self._shelves = (screenshot_shelf(data_dir), receipt_shelf(data_dir))

    async def read(self, uri: str, principal: str) -> ResourceContent | None:
        if (playbook := _PLAYBOOK.fullmatch(uri)) is not None:
            return await self._playbook(uri, unquote(playbook["scope"]), principal)
        if (address := _ADDRESS.fullmatch(uri)) is None:
            return None
        if address["kind"] == "ledger":
            return await self._call(uri, address["name"], principal)
        if address["kind"] == "receipt":
            return await self._receipt(uri, address["name"], principal)
        if not address["name"].startswith(shelf_mark(principal)):
            return None
        return await anyio.to_thread.run_sync(self._picture, uri, address["name"])

    async def _call(self, uri: str, call_id: str, principal: str) -> ResourceContent | None:
        try:
            call = await self._db.read(get_call, call_id)
        except StoreUnavailable as failure:
            raise store_failed(failure) from failure
        if call is None or call.record is None or call.record.caller.principal != principal:
            return None
        return ResourceContent(uri, "application/json", text=evidence_json(call))

    async def _receipt(self, uri: str, transition_id: str, principal: str) -> ResourceContent | None:
        try:
            found = await self._db.read(find_transition, principal, transition_id)
        except StoreUnavailable as failure:
            raise store_failed(failure) from failure
        if found is None:
            return None
        return ResourceContent(uri, "application/json", text=receipt_to_json(found.as_receipt()))

    async def _playbook(self, uri: str, scope: str, principal: str) -> ResourceContent | None:
        """What this principal knows of that host, its own before what is meant for everybody."""
        if (host := normalize_host(scope)) is None:
            return None
        try:
            found = await self._db.read(notes_of, principal, (host,), PLAYBOOK_KEY)
        except StoreUnavailable as failure:
            raise store_failed(failure) from failure
        note = min(found, key=lambda one: one.principal == EVERYBODY, default=None)
        return None if note is None else ResourceContent(uri, "text/markdown", text=note.value)

    def _picture(self, uri: str, name: str) -> ResourceContent | None:
        path = next((found for shelf in self._shelves if (found := shelf.find(name)) is not None), None)
        if path is None:
            return None
        return ResourceContent(uri, f"image/{path.suffix.removeprefix('.')}", data=path.read_bytes())


def evidence_json(call: StoredCall) -> str:
    """A record with its place in the chain, as people and programs may read it."""
    body = json.loads(canonical_body(call.record)) if call.record is not None else None
    link = {"serverId": call.link.server_id, "serverSeq": call.link.server_seq, "hash": call.link.hash.hex()}
    return json.dumps({"link": link, "record": body}, ensure_ascii=False, indent=1)
