"""Where a call ended, as the host knows it: for what is derived from its record, kept in no record itself."""

from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.urls import normalize_url, url_hash
from nova_mcp.evidence.model import PageState
from nova_mcp.evidence.page_sights import Sight
from nova_mcp.memory.tasks.coverage.locators import path_hash, same_but_spelling
from nova_mcp.memory.tasks.coverage.rules import is_error
from nova_mcp.secrets.redactor import Redactor


def sight_of(tab: Tab | None, before: PageState, began_on: str | None, redactor: Redactor) -> Sight | None:
    """The page a call ended on, else the one it began on; None where neither has an address that counts."""
    if tab is None:
        return None
    url = normalize_url(tab.url)
    left = url is None
    if url is None:
        url = None if began_on is None else normalize_url(began_on)
    if url is None:
        return None
    return Sight(
        url=url,
        url_hash=url_hash(url),
        path_hash=path_hash(url),
        http_status=None if left else tab.http_status,
        error_page=not left and is_error(tab.http_status),
        agent_scripted=tab.scripted_epoch == tab.page_epoch,
        steady=not left and before.page_epoch == tab.page_epoch and _same(began_on, tab.url, url),
        redirected=() if left else _redirected(tab.redirects, url),
        life=tab.signs.told(),
        keepable=redactor.text(url) == url,
    )


def _same(began_on: str | None, ended_on: str, url: str) -> bool:
    return began_on == ended_on or (began_on is not None and normalize_url(began_on) == url)


def _redirected(chain: tuple[str, ...], url: str) -> tuple[str, ...]:
    """The addresses on the way that are the page's own but for their spelling."""
    on_the_way = {normalize_url(one) for one in chain} - {None, url}
    return tuple(sorted(url_hash(one) for one in on_the_way if one is not None and same_but_spelling(one, url)))
