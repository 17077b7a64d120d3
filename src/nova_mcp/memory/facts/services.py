"""Which service a page belongs to: a table of well-known ones, else the registrable domain and its port."""

import functools
import tomllib
from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Any, Final

from nova_mcp.core.hosts import MULTI_TENANT_DOMAINS, normalize_host, site, under
from nova_mcp.core.urls import page_host, page_origin
from nova_mcp.memory.facts.model import Service, ServiceKind

TABLE: Final = "services.toml"
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}


@functools.cache
def well_known() -> Mapping[str, Service]:
    """Services by host."""
    raw: dict[str, dict[str, Any]] = tomllib.loads(
        files("nova_mcp.memory.facts").joinpath(TABLE).read_text(encoding="utf-8")
    )
    table: dict[str, Service] = {}
    for key, entry in raw.items():
        kind: ServiceKind = entry.get("kind", "other")
        for host in entry["hosts"]:
            if host in table:
                raise ValueError(f"two services live on {host}")
            table[host] = Service(key, kind)
    return table


def service_of(url: str, multi_tenant: Collection[str] = MULTI_TENANT_DOMAINS) -> Service | None:
    """The service behind an address; None for everything but web pages."""
    origin, raw = page_origin(url), page_host(url)
    if origin is None or raw is None:
        return None
    host = normalize_host(raw) or raw
    port = _port(origin)
    if not port and (known := _known(host)) is not None:
        return known
    return Service(site(host, multi_tenant) + port)


def _known(host: str) -> Service | None:
    table = well_known()
    fitting = [name for name in _endings(host) if name in table and under(host, name)]
    return table[fitting[0]] if fitting else None


def _endings(host: str) -> list[str]:
    """The host and everything above it, longest first."""
    labels = host.split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]


def _port(origin: str) -> str:
    scheme, _, place = origin.partition("://")
    _, colon, port = place.rpartition(":")
    if not colon or not port.isdigit() or _DEFAULT_PORTS.get(scheme) == port:
        return ""
    return f":{port}"
