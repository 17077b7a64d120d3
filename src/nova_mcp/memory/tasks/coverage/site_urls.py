"""Addresses that Nova knows of a site: pages visited, and links that scans have seen on them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection, delete, func, or_, select
from sqlalchemy import text as sql

from nova_mcp.core.hosts import normalize_host, site
from nova_mcp.core.redaction import is_sensitive_key
from nova_mcp.core.urls import page_host, url_hash
from nova_mcp.evidence.rules import DAY_MS
from nova_mcp.memory.tasks.tables import site_url
from nova_mcp.storage.prepared import Prepared

Source = Literal["visited", "link"]
KEPT_DAYS: Final = 90
MOST_PER_SITE: Final = 10_000
# How far a site may go over before somebody tidies up.
BEYOND: Final = 2_000
FORGOTTEN_AT_ONCE: Final = 500

# A link that was followed once stays known as visited.
_NOTE = Prepared(
    sql(
        "INSERT INTO site_url (principal, url_hash, url, host, site, source, last_seen_ms) "
        "VALUES (:principal, :url_hash, :url, :host, :site, :source, :at_ms) "
        "ON CONFLICT (principal, url_hash) DO UPDATE SET last_seen_ms = excluded.last_seen_ms, "
        "source = CASE WHEN excluded.source = 'visited' THEN 'visited' ELSE site_url.source END"
    )
)


@dataclass(frozen=True, slots=True)
class Place:
    """Whose an address is."""

    host: str
    site: str


def place_of(url: str) -> Place | None:
    """The host and the site of a normalised URL; a leading `www.` is part of no host here."""
    raw = page_host(url)
    host = None if raw is None else normalize_host(raw)
    return None if host is None else Place(host, site(host))


_SIGNED: Final = frozenset({"auth", "code", "jwt", "key", "sessionid", "sid", "sig", "signature", "ticket"})
_TOKEN: Final = re.compile(r"eyJ[\w-]{5,}\.[\w-]{5,}")


def rememberable(url: str) -> bool:
    """Whether an address may be kept: one whose query lets somebody in is not."""
    query = url.partition("?")[2]
    for pair in re.split(r"[&#?]", query):
        name, _, value = pair.partition("=")
        if value and (is_sensitive_key(name) or re.sub(r"[^a-z]", "", name.lower()) in _SIGNED):
            return False
    return _TOKEN.search(url) is None


def note(
    conn: Connection, principal: str, at_ms: int, *, visited: Iterable[str] = (), links: Iterable[str] = ()
) -> None:
    """Remember pages that were there and answered, and links to pages of their site.

    All in one go and sorted: two servers that note the same addresses in any order would wait for each other. A site
    that has too many takes no more links until its oldest addresses are gone, which is not done while calls wait.
    """
    rows = _rows(links, "link")
    full = {of_site for of_site in {row["site"] for row in rows.values()} if _is_full(conn, principal, of_site)}
    rows = {digest: row for digest, row in rows.items() if row["site"] not in full} | _rows(visited, "visited")
    if rows:
        _NOTE.many(conn, [{**rows[digest], "principal": principal, "at_ms": at_ms} for digest in sorted(rows)])


def seeds(conn: Connection, principal: str, scope_domain: str, limit: int) -> list[str]:
    """Known addresses of a domain and everything below it, the latest seen first."""
    domain = normalize_host(scope_domain)
    if domain is None:
        return []
    below = site_url.c.host.endswith("." + domain, autoescape=True)
    wanted = (
        select(site_url.c.url)
        .where(site_url.c.principal == principal, site_url.c.site == site(domain))
        .where(or_(site_url.c.host == domain, below))
        .order_by(site_url.c.last_seen_ms.desc(), site_url.c.url_hash)
        .limit(limit)
    )
    return list(conn.execute(wanted).scalars())


def trim(conn: Connection, principal: str, of_site: str) -> int:
    """Let the oldest addresses of a site go where there are too many."""
    own = (site_url.c.principal == principal, site_url.c.site == of_site)
    known = conn.execute(select(func.count()).select_from(site_url).where(*own)).scalar_one()
    if known <= MOST_PER_SITE:
        return 0
    oldest = select(site_url.c.url_hash).where(*own).order_by(site_url.c.last_seen_ms, site_url.c.url_hash)
    gone = list(conn.execute(oldest.limit(known - MOST_PER_SITE)).scalars())
    for start in range(0, len(gone), FORGOTTEN_AT_ONCE):
        some = gone[start : start + FORGOTTEN_AT_ONCE]
        conn.execute(delete(site_url).where(site_url.c.principal == principal, site_url.c.url_hash.in_(some)))
    return len(gone)


def forget(conn: Connection, now_ms: int) -> int:
    """Let go of addresses that were not seen for long, and of the oldest of sites that have too many."""
    old = select(site_url.c.principal, site_url.c.url_hash).where(site_url.c.last_seen_ms < now_ms - KEPT_DAYS * DAY_MS)
    rows = conn.execute(old.order_by(site_url.c.last_seen_ms).limit(FORGOTTEN_AT_ONCE)).all()
    for row in rows:
        conn.execute(delete(site_url).where(site_url.c.principal == row.principal, site_url.c.url_hash == row.url_hash))
    full = (
        select(site_url.c.principal, site_url.c.site)
        .group_by(site_url.c.principal, site_url.c.site)
        .having(func.count() > MOST_PER_SITE)
    )
    return len(rows) + sum(trim(conn, row.principal, row.site) for row in conn.execute(full).all())


def _is_full(conn: Connection, principal: str, of_site: str) -> bool:
    wanted = (
        select(func.count()).select_from(site_url).where(site_url.c.principal == principal, site_url.c.site == of_site)
    )
    return conn.execute(wanted).scalar_one() >= MOST_PER_SITE + BEYOND


def _rows(urls: Iterable[str], source: Source) -> dict[str, dict[str, str]]:
    rows = {}
    for url in urls:
        place = place_of(url)
        if place is not None and rememberable(url):
            digest = url_hash(url)
            rows[digest] = {
                "url_hash": digest,
                "url": url,
                "host": place.host,
                "site": place.site,
                "source": source,
            }
    return rows
