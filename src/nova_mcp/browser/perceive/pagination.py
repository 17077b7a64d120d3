"""Whether there is more than a page shows, and which way leads to it."""

from typing import Final

from nova_mcp.browser.perceive.report import More
from nova_mcp.browser.perceive.scan_values import Scan, SeenElement
from nova_mcp.core.page.labels import words_of

_LOAD_MORE: Final = frozenset(
    words_of(phrase)
    for phrase in (
        *("load more", "show more", "see more", "more results", "mehr laden", "mehr anzeigen", "weitere laden"),
        *("weitere anzeigen", "weitere ergebnisse", "charger plus", "voir plus", "afficher plus"),
        *("plus de résultats", "cargar más", "mostrar más", "ver más", "más resultados"),
    )
)
_NEXT_PAGE: Final = frozenset(
    words_of(phrase)
    for phrase in ("next page", "nächste seite", "page suivante", "página siguiente", "siguiente página")
)
# These words alone also stand on wizards and galleries, so they count only among links that lead around a site.
_NEXT: Final = frozenset(words_of(word) for word in ("next", "weiter", "nächste", "suivant", "suivante", "siguiente"))
_LONGEST_LABEL: Final = 40
_ROLES: Final = frozenset({"button", "link"})


def more_by(scan: Scan) -> More | None:
    """A control that loads more comes before one that turns the page, and both before scrolling."""
    labels = [(e, words_of(e.facts.name)) for e in scan.elements if _could_lead_on(e)]
    if any(not e.is_link and (words[:2] in _LOAD_MORE or words[:3] in _LOAD_MORE) for e, words in labels):
        return "loadMore"
    if any(e.next_page or words in _NEXT_PAGE or (e.in_nav and words in _NEXT) for e, words in labels):
        return "pagination"
    return "scroll" if scan.page.below_px > 0 else None


def _could_lead_on(element: SeenElement) -> bool:
    named = 0 < len(element.facts.name) <= _LONGEST_LABEL
    return (named or element.next_page) and element.facts.role in _ROLES and "disabled" not in element.flags
