"""One browser and one site for all tests of a module."""

from place_fixtures import anyio_backend, pages, place, server, tab

__all__ = ["anyio_backend", "pages", "place", "server", "tab"]
