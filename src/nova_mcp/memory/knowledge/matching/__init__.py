"""Recognising situations: fingerprints, routes and the ranking of entries for a page."""

__all__ = ["categories", "entry_ranking", "fingerprints", "page_facts", "routes", "site_discovery"]
