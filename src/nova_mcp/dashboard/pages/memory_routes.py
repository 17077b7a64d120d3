"""Addresses of the pages on what Nova remembers: knowledge, facts and notes."""

from nova_mcp.dashboard.context import Entry, Place, View, Visit, missing
from nova_mcp.dashboard.formatting import plain
from nova_mcp.dashboard.pages import entry as entry_page
from nova_mcp.dashboard.pages import facts as facts_page
from nova_mcp.dashboard.pages import knowledge
from nova_mcp.dashboard.pages import notes as notes_page
from nova_mcp.dashboard.pages.facts import FactsAsked
from nova_mcp.dashboard.request_query import address, text
from nova_mcp.memory.knowledge.model import Problem
from nova_mcp.memory.knowledge.scopes import scope_of

# -- knowledge


async def sites(visit: Visit) -> View:
    found = await visit.desk.read(knowledge.sites, text(visit, "prefix"), text(visit, "after"), visit.desk.now_ms())
    following = found.next_after and address("/knowledge", prefix=found.prefix, after=found.next_after)
    return View("memory/knowledge.html", {"title": "Knowledge", "page": found, "following": following})


async def site(visit: Visit) -> View:
    scope = scope_of(text(visit, "scope"))
    if isinstance(scope, Problem):
        return missing(scope.message)
    found = await visit.desk.read(knowledge.site, scope, visit.desk.now_ms(), visit.desk.consent_gates)
    if found is None:
        return missing(f"Nothing is known of {scope}.")
    return View("memory/site.html", {"title": scope, "page": found})


async def entry(visit: Visit) -> View:
    scope, stable_id = scope_of(text(visit, "scope")), text(visit, "id")
    if isinstance(scope, Problem):
        return missing(scope.message)
    desk = visit.desk
    found = await desk.read(entry_page.entry, scope, stable_id, desk.now_ms(), desk.consent_gates)
    if found is None:
        return missing(f"{scope} has no entry of that name.")
    return View("memory/entry.html", {"title": plain(stable_id), "page": found})


# -- facts


async def facts(visit: Visit) -> View:
    last = (text(visit, "tab"), text(visit, "at"), text(visit, "key"))
    asked = FactsAsked(
        text(visit, "target"), text(visit, "service"), text(visit, "closed") == "yes", last if all(last) else None
    )
    found = await visit.desk.read(facts_page.facts, asked)
    following = None
    if found.next_after is not None:
        tab, at, key = found.next_after
        chosen = {"target": asked.target_id, "service": asked.service_key, "closed": "yes" if asked.closed else ""}
        following = address("/facts", **chosen, tab=tab, at=at, key=key)
    return View("memory/facts.html", {"title": "Facts", "page": found, "following": following})


async def fact(visit: Visit) -> View:
    asked = (text(visit, "target"), text(visit, "service"), text(visit, "key"))
    found = await visit.desk.read(facts_page.fact, *asked, visit.desk.now_ms())
    if found is None:
        return missing("Nobody has held such a fact true.")
    return View("memory/fact.html", {"title": plain(asked[2]), "page": found})


# -- notes


async def notes(visit: Visit) -> View:
    kind = next((one for one in notes_page.KINDS if one == text(visit, "kind")), notes_page.KINDS[0])
    found = await visit.desk.read(notes_page.notes, kind, text(visit, "domain"), visit.desk.now_ms())
    return View("memory/notes.html", {"title": "Notes", "page": found, "kinds": notes_page.KINDS})


KNOWLEDGE = (
    Place("/knowledge", "knowledge", get=sites, menu=Entry("Memory", "Knowledge")),
    Place("/knowledge/site", "knowledge", get=site),
    Place("/knowledge/entry", "knowledge", get=entry),
)
PLACES = (
    Place("/facts", "facts", get=facts, menu=Entry("Memory", "Facts")),
    Place("/facts/one", "facts", get=fact),
    Place("/notes", "notes", get=notes, menu=Entry("Memory", "Notes")),
)
