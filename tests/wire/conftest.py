"""Fixtures that open connections: two transports, two protocol eras."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

sys.path.insert(0, str(Path(__file__).parent))

from wire_kit import Connect, Events, http_client, http_server, stdio_client

from nova_mcp.settings import Settings


@pytest.fixture
def events() -> Iterator[Events]:
    log = Events()
    yield log
    log.close()


@pytest.fixture
def make_settings(tmp_path: Path) -> Callable[..., Settings]:
    def make(**changes: Any) -> Settings:
        http = {"port": 0, **changes.pop("http", {})}
        return Settings.model_validate({"data_dir": tmp_path / "data", "http": http, **changes})

    return make


@pytest.fixture(params=["legacy", "auto"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["stdio", "http"])
def connect(
    request: pytest.FixtureRequest, era: str, events: Events, make_settings: Callable[..., Settings]
) -> Connect:
    """Opens a client over the transport and in the era of this run of the test."""

    @asynccontextmanager
    async def over_http(*, changes: dict[str, Any], options: dict[str, Any]) -> AsyncIterator[Client]:
        async with (
            http_server(events, make_settings(**changes)) as server,
            http_client(server, era, **options) as client,
        ):
            yield client

    def open_client(changes: dict[str, Any] | None = None, **options: Any) -> AbstractAsyncContextManager[Client]:
        if request.param == "stdio":
            return stdio_client(events, make_settings(**(changes or {})), era, **options)
        return over_http(changes=changes or {}, options=options)

    return open_client
