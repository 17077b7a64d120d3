"""The file format of a sandbox's stored state: cookies, storage, open addresses."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

from playwright.async_api import StorageState
from pydantic import BaseModel, ConfigDict, Field

from nova_mcp.browser.state.sandbox_traits import PLAIN, Traits

VERSION: Final = 1
MAX_SESSION_CHARS: Final = 1_000_000

Sessions = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class KeptState:
    """One jar at one moment. Without an id no server has used it yet: a person logged in first."""

    sandbox_ref: str
    sandbox_id: str | None = None
    principal: str | None = None
    created_at_ms: int = 0
    saved_at_ms: int = 0
    storage: StorageState = field(default_factory=lambda: StorageState(cookies=[], origins=[]), repr=False)
    sessions: Sessions = field(default_factory=dict, repr=False)
    urls: tuple[str, ...] = ()
    # The one that everybody gets who asks for none; others were made on purpose and have traits of their own.
    first: bool = True
    traits: Traits = PLAIN

    def same_content(self, other: "KeptState") -> bool:
        return replace(self, saved_at_ms=0) == replace(other, saved_at_ms=0)


class _Cookie(BaseModel):
    """As strict as the browser that has to take it: what it would refuse is not a cookie."""

    model_config = ConfigDict(extra="allow", strict=True)

    name: str
    value: str
    domain: str
    path: str
    expires: float | None = None
    http_only: bool | None = Field(None, alias="httpOnly")
    secure: bool | None = None
    same_site: Literal["Strict", "Lax", "None"] | None = Field(None, alias="sameSite")


class _Item(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    name: str
    value: str


class _Origin(BaseModel):
    model_config = ConfigDict(extra="allow")

    origin: str
    local_storage: list[_Item] | None = Field(None, alias="localStorage")


class _Storage(BaseModel):
    model_config = ConfigDict(extra="allow")

    cookies: list[_Cookie]
    origins: list[_Origin]


class _Size(BaseModel):
    model_config = ConfigDict(extra="forbid")

    width: int = Field(ge=320, le=3840)
    height: int = Field(ge=240, le=2160)


class _Traits(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    purpose: str | None = None
    account_label: str | None = Field(None, alias="accountLabel")
    locale: str | None = None
    timezone: str | None = None
    viewport: _Size | None = None


class _File(BaseModel):
    """The file as it is written; the driver's own part may grow with its version."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    v: int = Field(ge=VERSION, le=VERSION)
    sandbox_ref: str = Field(alias="sandboxRef", pattern=r"^[0-9a-f]{32}$")
    sandbox_id: str | None = Field(alias="sandboxId", pattern=r"^[A-Z]{1,6}$")
    principal: str | None
    created_at_ms: int = Field(alias="createdAtMs")
    saved_at_ms: int = Field(alias="savedAtMs")
    storage: _Storage
    sessions: dict[str, dict[str, str]]
    urls: tuple[str, ...]
    first: bool = True
    traits: _Traits | None = None


def _traits_json(traits: Traits) -> dict[str, Any]:
    size = traits.viewport
    told = {
        "name": traits.name,
        "purpose": traits.purpose,
        "accountLabel": traits.account_label,
        "locale": traits.locale,
        "timezone": traits.timezone,
        "viewport": None if size is None else {"width": size[0], "height": size[1]},
    }
    return {name: value for name, value in told.items() if value is not None}


def _read_traits(read: _Traits | None) -> Traits:
    if read is None:
        return PLAIN
    size = None if read.viewport is None else (read.viewport.width, read.viewport.height)
    return Traits(read.name, read.purpose, read.account_label, read.locale, read.timezone, size)


def to_json(state: KeptState) -> dict[str, Any]:
    # The first sandbox is written without the newer entries, so that an older Nova can still read it.
    newer = {} if state.first else {"first": False, "traits": _traits_json(state.traits)}
    return newer | {
        "v": VERSION,
        "sandboxRef": state.sandbox_ref,
        "sandboxId": state.sandbox_id,
        "principal": state.principal,
        "createdAtMs": state.created_at_ms,
        "savedAtMs": state.saved_at_ms,
        "storage": state.storage,
        "sessions": state.sessions,
        "urls": state.urls,
    }


def from_json(body: object) -> KeptState:
    """The state a file holds; ValueError when it is not one."""
    read = _File.model_validate(body)
    return KeptState(
        sandbox_ref=read.sandbox_ref,
        sandbox_id=read.sandbox_id,
        principal=read.principal,
        created_at_ms=read.created_at_ms,
        saved_at_ms=read.saved_at_ms,
        storage=cast(StorageState, read.storage.model_dump(mode="json", by_alias=True, exclude_unset=True)),
        sessions=read.sessions,
        urls=read.urls,
        first=read.first,
        traits=_read_traits(read.traits),
    )


def cookies_per_host(storage: StorageState) -> dict[str, int]:
    """How many cookies each host has; what a person may be told without being told a value."""
    counts: dict[str, int] = {}
    for cookie in storage.get("cookies", []):
        host = cookie.get("domain", "").removeprefix(".")
        counts[host] = counts.get(host, 0) + 1
    return dict(sorted(counts.items()))


def with_older_databases(storage: StorageState, older: StorageState) -> StorageState:
    """A capture without databases, completed by those last seen at the same origins."""
    known = {str(origin.get("origin")): cast(dict[str, Any], origin) for origin in older.get("origins", [])}
    origins: list[Any] = []
    for origin in storage.get("origins", []):
        before = known.pop(str(origin.get("origin")), {})
        origins.append({**({"indexedDB": before["indexedDB"]} if "indexedDB" in before else {}), **origin})
    # An origin without local storage is left out of such a capture although its databases may still be there.
    origins += [{**before, "localStorage": []} for before in known.values() if before.get("indexedDB")]
    return StorageState(cookies=storage.get("cookies", []), origins=origins)
