"""Recognising situations: fingerprints, routes and the ranking of entries for a page."""
