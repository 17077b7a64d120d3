"""Where a unit of work is to be seen: its address or its control, in the form the ledger is searched by; pure."""

from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.core.page.selectors import normalize_selector, selector_hash
from nova_mcp.core.urls import normalize_url, page_origin, url_hash
from nova_mcp.memory.tasks.model import URL_KINDS, UnitKind

LocatorType = Literal["url_exact", "url_path", "selector"]
UNIT_PREFIX: Final = "url:"


@dataclass(frozen=True, slots=True)
class Locator:
    """What a recorded call is held against; `hash` is what it is looked up by."""

    type: LocatorType
    value: str
    hash: str


@dataclass(frozen=True, slots=True)
class Declared:
    """A locator as an agent states it for a unit that has none of its own."""

    type: LocatorType
    value: str


@dataclass(frozen=True, slots=True)
class BadLocator:
    """Why a unit can't be found on any page; `text` is what was given."""

    text: str
    why: str


def unit_locator(
    kind: UnitKind, text: str, *, declared: Declared | None = None, target_url: str | None = None
) -> Locator | BadLocator | None:
    """The locator of a unit; `text` is the URL in runs over pages and the unit's key in others.

    None for units that Nova can't see.
    """
    if kind in URL_KINDS:
        if declared is not None:
            return BadLocator(text, "a page is found by its url alone")
        return url_locator(text, target_url)
    if declared is not None:
        return _declared(declared, target_url)
    return _selector(text) if kind == "selector" else None


def url_locator(text: str, target_url: str | None = None) -> Locator | BadLocator:
    """A whole URL, or a path of the site that the run is about."""
    url = _resolved(text, target_url)
    if url is None:
        return BadLocator(text, "neither an http or https URL nor a path below the run's targetUrl")
    return Locator("url_exact", url, url_hash(url))


def unit_key(url: str) -> str:
    """The key of a unit that stands for a normalised URL."""
    return UNIT_PREFIX + url_hash(url)


def without_query(url: str) -> str:
    """A normalised URL that any query may follow."""
    head, mark, fragment = url.partition("#")
    return head.partition("?")[0] + mark + fragment


def path_hash(url: str) -> str:
    """Stands for a normalised URL under any query; never the same as the hash of a URL itself."""
    return url_hash("path " + without_query(url))


def same_but_spelling(one: str, other: str) -> bool:
    """Whether two normalised URLs differ in nothing but scheme, leading `www.` and the case of their paths."""
    return _spelled(one) == _spelled(other)


def _spelled(url: str) -> tuple[str, str, str]:
    rest = url.partition("://")[2]
    place, mark, fragment = rest.partition("#")
    place, asks, query = place.partition("?")
    authority, _, path = place.partition("/")
    return authority.removeprefix("www."), path.lower(), asks + query + mark + fragment


def absolute(text: str, target_url: str | None) -> str | None:
    """The address that a text means, not normalised yet; a path needs the run's target to stand on."""
    given = text.strip()
    if not given.startswith("/"):
        return given
    origin = None if target_url is None else page_origin(target_url)
    if origin is None:
        return None
    # Two slashes name a host, as in a browser, not a path of the run's own site.
    return f"{origin.partition(':')[0]}:{given}" if given.startswith("//") else origin + given


def _resolved(text: str, target_url: str | None) -> str | None:
    address = absolute(text, target_url)
    return None if address is None else normalize_url(address)


def _declared(declared: Declared, target_url: str | None) -> Locator | BadLocator:
    if declared.type == "selector":
        return _selector(declared.value)
    url = _resolved(declared.value, target_url)
    if url is None:
        return BadLocator(declared.value, "neither an http or https URL nor a path below the run's targetUrl")
    if declared.type == "url_exact":
        return Locator("url_exact", url, url_hash(url))
    return Locator("url_path", without_query(url), path_hash(url))


def _selector(text: str) -> Locator | BadLocator:
    selector = normalize_selector(text)
    return Locator("selector", selector, selector_hash(selector)) if selector else BadLocator(text, "an empty selector")
