"""One browser and one site for all tests of a module that names its `PAGES`; each test has a place of its own there."""

from collections.abc import AsyncIterator, Iterator

import pytest
from loop_kit import SECRET, Server, Shop, serving, shop
from place_kit import Place


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def pages(request: pytest.FixtureRequest) -> Iterator[Shop]:
    with shop() as running:
        running.pages.update(request.module.PAGES)
        yield running


@pytest.fixture(scope="module")
async def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, anyio_backend: str
) -> AsyncIterator[Server]:
    """A module's `SETTINGS` are taken over the usual ones."""
    data_dir = tmp_path_factory.mktemp("nova")
    (data_dir / "secrets.toml").write_text(f'[shop]\nvalue = "{SECRET}"\nhosts = ["*.localhost", "127.0.0.1"]\n')
    (data_dir / "secrets.toml").chmod(0o600)
    async with serving(data_dir, **getattr(request.module, "SETTINGS", {})) as running:
        yield running


@pytest.fixture(scope="module")
async def tab(server: Server) -> str:
    return await server.new_tab()


@pytest.fixture
async def place(server: Server, tab: str, pages: Shop) -> Place:
    found = Place.new(server, pages, tab)
    await found.go("/plain")
    return found
