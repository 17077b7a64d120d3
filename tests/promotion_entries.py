"""Entries for the tests of promotion, put into a store as their writers put them there."""

from dataclasses import replace

from nova_mcp.knowledge import store
from nova_mcp.knowledge.model import (
    Action,
    Content,
    Context,
    DomainHint,
    Fingerprint,
    HintId,
    Phenomenon,
    Playbook,
    ScopeName,
    Signal,
    StableId,
)
from nova_mcp.knowledge.store import Birth, Shelved
from nova_mcp.promotion import steps_store
from nova_mcp.promotion.model import DAY_MS
from nova_mcp.storage.engine import Database

HERE = ScopeName("shop.test")
NOW = 100 * DAY_MS


def phenomenon(stable_id: str = "banner", selector: str = "#go", **changes: object) -> Phenomenon:
    routes = changes.pop("routes", ())
    content = Content(
        changes.pop("type", "modal"),  # type: ignore[arg-type]
        Fingerprint((Signal("dom", "#layer"), Signal("text", "Newsletter", "en")), 0.6),
        Playbook("dismiss", (Action("click", selector, ("#fallback",)),)),
        Context(routes=routes),  # type: ignore[arg-type]
    )
    made = Phenomenon(StableId(stable_id), content, level=1, created_at_ms=NOW - DAY_MS, updated_at_ms=NOW - DAY_MS)
    return replace(made, **changes)  # type: ignore[arg-type]


def hint(hint_id: str = "ads", **changes: object) -> DomainHint:
    made = DomainHint(HintId(hint_id), "ad_container", ("#ad",), NOW - DAY_MS, NOW - DAY_MS)
    return replace(made, **changes)  # type: ignore[arg-type]


def added(db: Database, kept: Phenomenon | DomainHint, birth: Birth | None = None, scope: ScopeName = HERE) -> Shelved:
    def write(conn):  # type: ignore[no-untyped-def]
        put = store.add(conn, scope, kept, birth or Birth())
        steps_store.born(conn, put)
        return put

    return db.write_sync(write)  # type: ignore[no-any-return]
