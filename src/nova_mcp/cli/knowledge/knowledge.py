"""`nova knowledge`: what is known of websites, how sure it is, and how it came to be."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from nova_mcp.cli.knowledge.entry_view import entry_json, progress_json, progress_text, say_entry, standing
from nova_mcp.cli.knowledge.site_arguments import Site, ids_of, named_entry, named_site, no_entry, nothing_known
from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.store.open_store import opened
from nova_mcp.cli.terminal import moment, note, print_json, print_table, say, visible
from nova_mcp.core.clock import SystemClock
from nova_mcp.core.keywords import some
from nova_mcp.memory.knowledge.matching.categories import categories_of
from nova_mcp.memory.knowledge.model import Phenomenon, ScopeName
from nova_mcp.memory.knowledge.site_list import Listing, SiteBrief, Wanted, listed
from nova_mcp.memory.promotion import overview
from nova_mcp.memory.promotion.overview import KnownEntry, KnownSite, Life
from nova_mcp.memory.promotion.overview import KnownRevision as Stands
from nova_mcp.tools.knowledge.result_parts import health_part, hint_part, phenomenon_part
from nova_mcp.tools.times import utc

app = typer.Typer(add_completion=False)

LISTED = 500


@app.command()
def knowledge(
    scope: Site = None,
    entry: Annotated[str | None, typer.Argument(metavar="ID", help="One of its entries.")] = None,
    prefix: Annotated[str, typer.Option("--prefix", metavar="TEXT", help="Only sites that begin so.")] = "",
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Show what is known of websites: all sites, the entries of one, or one entry whole."""
    now_ms = SystemClock().now_ms()
    site = None if scope is None else named_site(scope)
    settings = read_settings(data_dir, store)
    gates = settings.learning.consent_gates
    with opened(settings) as database:
        if site is None:
            wanted = Wanted(prefix=prefix.strip().lower(), limit=LISTED)
            _sites(database.read_sync(listed, wanted, now_ms), json=json)
        elif entry is None:
            _site(database.read_sync(overview.site, site, now_ms, gates), site, now_ms, json=json)
        else:
            name = named_entry(entry)
            found = database.read_sync(overview.life, site, name, now_ms, gates)
            if found is None:
                no_entry(site, name, database.read_sync(ids_of, site))
            _entry(found, site, now_ms, json=json)


# -- all sites


def _sites(found: Listing, *, json: bool) -> None:
    if found.has_more:
        note(f"Only the first {LISTED} sites are shown; narrow them down with --prefix.")
    if json:
        print_json({"sites": [_brief_json(one) for one in found.sites]})
        return
    if not found.sites:
        note("No sites match.")
    columns = ("site", "trust", "active", "shadow", "candidate", "deprecated", "hints", "health", "changed")
    print_table(columns, [_brief_row(one) for one in found.sites])


def _brief_row(one: SiteBrief) -> tuple[object, ...]:
    counts = (one.active, one.shadow, one.candidate, one.deprecated, one.hints)
    return (one.scope, one.trust, *counts, _health(one), moment(one.updated_at_ms))


def _health(one: SiteBrief) -> str:
    told = [] if one.rate is None else [f"{one.rate:.0%}"]
    told += [f"{one.watch} on watch"] if one.watch else []
    told += [f"{one.quarantined} quarantined"] if one.quarantined else []
    return ", ".join(told) or "-"


def _brief_json(one: SiteBrief) -> dict[str, Any]:
    return {
        "scope": one.scope,
        "trust": one.trust,
        "active": one.active,
        "shadow": one.shadow,
        "candidate": one.candidate,
        "deprecated": one.deprecated,
        "hints": one.hints,
        "avgSuccessRate30d": one.rate,
        "watch": one.watch,
        "quarantined": one.quarantined,
        "types": list(one.types),
        "serviceCategories": list(one.categories),
        "updatedAtUtc": utc(one.updated_at_ms),
    }


# -- one site


def _site(found: KnownSite | None, scope: ScopeName, now_ms: int, *, json: bool) -> None:
    if found is None:
        nothing_known(scope)
    if json:
        print_json(_site_json(found, now_ms))
        return
    kinds = f" ({', '.join(categories_of(found.about))})" if categories_of(found.about) else ""
    counted = some(len(found.entries), "entry", "entries")
    say(visible(f"{scope}{kinds}: trust {found.trust}, {counted}") + "\n")
    columns = ("id", "type", "level", "progress", "health", "stale", "drift", "revision", "changed")
    print_table(columns, [row for one in found.entries for row in _entry_rows(one, now_ms)])


def _entry_rows(one: KnownEntry, now_ms: int) -> Iterator[tuple[object, ...]]:
    yield _row(one.current, now_ms)
    if one.pending is not None:
        yield (f"  {one.pending.shelved.stable_id} (in review)", *_row(one.pending, now_ms)[1:])


def _row(one: Stands, now_ms: int) -> tuple[object, ...]:
    kept = one.shelved.kept
    health = health_part(kept.health, now_ms)
    return (
        one.shelved.stable_id,
        kept.content.type if isinstance(kept, Phenomenon) else f"hint: {kept.kind}",
        standing(kept),
        progress_text(one.progress),
        health.line(),
        f"{health.staleness:.0%}",
        f"{kept.drift_debt:.2f}" if isinstance(kept, Phenomenon) else "-",
        kept.revision,
        moment(kept.updated_at_ms),
    )


def _site_json(found: KnownSite, now_ms: int) -> dict[str, Any]:
    return {
        "scope": found.about.name,
        "trust": found.trust,
        "contentRev": found.about.content_rev,
        "serviceCategories": list(categories_of(found.about)),
        "entries": [_brief_entry(one, now_ms) for one in found.entries],
    }


def _brief_entry(one: KnownEntry, now_ms: int) -> dict[str, Any]:
    return {
        **_brief(one.current, now_ms),
        "pending": None if one.pending is None else _brief(one.pending, now_ms),
    }


def _brief(one: Stands, now_ms: int) -> dict[str, Any]:
    kept = one.shelved.kept
    part = phenomenon_part(kept, now_ms) if isinstance(kept, Phenomenon) else hint_part(kept)
    told: dict[str, Any] = part.model_dump(mode="json", by_alias=True)
    if isinstance(kept, Phenomenon):
        told["driftDebt"] = kept.drift_debt
    else:
        told["health"] = health_part(kept.health, now_ms).model_dump(mode="json", by_alias=True)
    return {**told, "origin": one.shelved.origin, "progress": progress_json(one.progress)}


# -- one entry


def _entry(found: Life, scope: ScopeName, now_ms: int, *, json: bool) -> None:
    if json:
        print_json({"scope": scope, **entry_json(found, now_ms)})
    else:
        say_entry(scope, found, now_ms)
