"""Entries of knowledge as promotion sees them, and back; pure."""

from dataclasses import replace

from nova_mcp.memory.knowledge.model import Phenomenon, Standing
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.promotion.model import Entry


def entry_of(shelved: Shelved) -> Entry:
    kept, standing = shelved.kept, shelved.kept.standing
    return Entry(
        stable_id=shelved.stable_id,
        host=shelved.scope,
        phenomenon_type=kept.content.type if isinstance(kept, Phenomenon) else kept.kind,
        level=kept.level,
        revision=kept.revision,
        deprecated=kept.deprecated,
        deprecated_reason=kept.deprecated_reason,
        disproven=standing.disproven,
        unconfirmed_selectors=len(kept.unseen) if isinstance(kept, Phenomenon) else 0,
        created_at_ms=kept.created_at_ms,
        unsettled_at_ms=standing.unsettled_at_ms,
        revised_at_ms=standing.revised_at_ms,
        last_hard_drift_at_ms=standing.last_hard_drift_at_ms,
        run=standing.run,
        health=kept.health,
    )


def with_entry(shelved: Shelved, entry: Entry, at_ms: int | None = None) -> Shelved:
    """The entry as it stands now; `at_ms` when a reader would see the change."""
    kept = shelved.kept
    standing = Standing(
        unsettled_at_ms=entry.unsettled_at_ms,
        revised_at_ms=entry.revised_at_ms,
        last_hard_drift_at_ms=entry.last_hard_drift_at_ms,
        disproven=entry.disproven,
        run=entry.run,
    )
    changed = replace(
        kept,
        level=entry.level,
        revision=entry.revision,
        # A retired entry has a reason, even where the one who retired it gave none.
        deprecated_reason=(entry.deprecated_reason or "") if entry.deprecated else None,
        health=entry.health,
        standing=standing,
        updated_at_ms=kept.updated_at_ms if at_ms is None else at_ms,
    )
    return replace(shelved, kept=changed)
