"""One frozen Settings model: flags over environment over `nova.toml`; the only reader of all three."""

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from nova_mcp.core.hosts import MULTI_TENANT_DOMAINS, host_rule, normalize_host
from nova_mcp.core.policy import is_host_pattern

GateMode = Literal["off", "warn", "shadow_block", "block"]
ToolNames = Literal["dotted", "underscore"]
PrivateNetwork = Literal["deny", "loopback", "lan"]

ENV_PREFIX = "NOVA_"
SECRET_PREFIX = "NOVA_SECRET_"  # noqa: S105 - the beginning of names, not a secret
CONFIG_FILE = "nova.toml"


class SettingsError(Exception):
    """The configuration can't be read; the message names the entry."""


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Viewport(Section):
    width: int = Field(1280, ge=320, le=3840)
    height: int = Field(800, ge=240, le=2160)


class BrowserSettings(Section):
    executable: Path | None = None
    headed: bool = False
    chromium_sandbox: Literal["auto", "on", "off"] = "auto"
    cdp_endpoint: str | None = Field(None, pattern=r"^(?:https?|wss?)://[^\s/]+")
    viewport: Viewport = Viewport()
    idle_release_s: int = Field(600, ge=5)
    # A browser, or the process that drives it, that does not answer for so long is ended and replaced.
    hang_timeout_s: int = Field(8, ge=2, le=300)
    # Above this the pages that fill the process that drives the browser are closed, and if need be it is replaced.
    driver_memory_mb: int = Field(600, ge=200)
    # Environment variables the browser may know besides the usual ones; secrets of the server are not among those.
    pass_environment: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    deny_hosts: tuple[str, ...] = ()
    allow_file_roots: tuple[Path, ...] = ()
    private_network: PrivateNetwork | None = None
    # The host lists hold for everything a page loads, not only for documents; addresses are judged either way.
    filter_subresources: bool = False
    # Unset: kept on stdio, where one person's client runs the server, and forgotten over HTTP.
    ephemeral: bool | None = None
    upload_roots: tuple[Path, ...] | None = None
    # Unset: all of them on stdio, where there is one principal, and half of them over HTTP.
    sandboxes_per_principal: int | None = Field(None, ge=1, le=100)
    tabs_per_principal: int | None = Field(None, ge=1, le=200)

    @field_validator("allow_hosts", "deny_hosts")
    @classmethod
    def _host_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """A rule that can never match would look like protection."""
        for pattern in patterns:
            if not is_host_pattern(pattern):
                raise ValueError(f'"{pattern[:80]}" is not a host; write example.com or *.example.com')
        return patterns


class GateSettings(Section):
    perceive_first: GateMode = "warn"
    overlay_detected: GateMode = "shadow_block"
    shared_agent_id: GateMode = "warn"
    # Whether an agent hears that it has not loaded the instructions yet.
    bootstrap: GateMode = "warn"
    # Whether an entry that has moved away from what was learned may still be applied.
    apply_drift: Literal["warn", "refuse"] = "refuse"
    low_disk_mb: int = Field(500, ge=0)
    critical_disk_mb: int = Field(50, ge=0)
    # What policies.toml demands; without that file it demands nothing.
    capability: GateMode = "off"
    session_budget: GateMode = "block"
    session_calls: int | None = Field(None, ge=1)
    session_navigations: int | None = Field(None, ge=1)
    session_minutes: int | None = Field(None, ge=1)
    session_image_bytes: int | None = Field(50_000_000, ge=1)


class RetentionSettings(Section):
    ended_days: int = Field(7, ge=0)
    gap_days: int = Field(30, ge=0)
    other_days: int = Field(30, ge=0)
    transition_days: int = Field(30, ge=0)
    claim_days: int = Field(30, ge=0)
    journal_days: int = Field(90, ge=0)
    fact_days: int = Field(90, ge=0)


class LearningSettings(Section):
    # Whether sites that agents work on are looked after between their calls.
    passes: bool = True
    # What the answer to a consent banner needs before it guides: 3 successes in 2 sessions with 1 failure at most, as
    # every entry, or strict: 5 in 3 with none.
    consent_gates: Literal["standard", "strict"] = "standard"


class TaskSettings(Section):
    # What happens when an exhaustive run of pages is to be completed while some are not covered.
    url_coverage_gate: GateMode = "block"
    # What a visit in learn mode has to reach before its tab is given back.
    learn_min_surfaces: int = Field(8, ge=1, le=100)
    learn_min_interactions: int = Field(12, ge=0, le=200)


def _normalized(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Hosts in the spelling in which they are compared."""
    hosts = [normalize_host(entry) for entry in entries]
    for entry, host in zip(entries, hosts, strict=True):
        if host is None:
            raise ValueError(f'"{entry[:80]}" is not a host; write example.com')
    return tuple(dict.fromkeys(host for host in hosts if host is not None))


class BrowserMemorySettings(Section):
    # Principals that want Nova to remember things about sites for them; `*` is everybody. No tool can add one.
    users: tuple[str, ...] = ()
    exclude_domains: tuple[str, ...] = ()
    allow_domains: tuple[str, ...] = ()
    retention_days: int = Field(30, ge=0, le=365)

    @field_validator("exclude_domains")
    @classmethod
    def _host_rules(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        """What an entry that covers nothing was meant to keep out would be remembered."""
        for entry in entries:
            if host_rule(entry) is None:
                raise ValueError(f'"{entry[:80]}" covers no host; write example.com, =example.com or .gov')
        return entries

    @field_validator("allow_domains")
    @classmethod
    def _hosts(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        return _normalized(entries)


class NoteSettings(Section):
    browser_memory: BrowserMemorySettings = BrowserMemorySettings()
    # Caps how far a note about a site can go: `block` lets it stop interactions until it is acknowledged.
    domain_note_mode: Literal["off", "warn", "block"] = "block"
    repeat_minutes: int = Field(60, ge=0, le=10_080)
    repeat_tool_calls: int = Field(50, ge=0, le=10_000)
    # Domains under which each name below is a tenant of its own.
    multi_tenant_domains: tuple[str, ...] = tuple(sorted(MULTI_TENANT_DOMAINS))

    @field_validator("multi_tenant_domains")
    @classmethod
    def _hosts(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        return _normalized(entries)


class ReceiptSettings(Section):
    pictures: bool = True


class HttpSettings(Section):
    host: str = "127.0.0.1"
    port: int = Field(27183, ge=0, le=65535)
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_body_bytes: int = Field(4 * 1024 * 1024, ge=1024)
    calls_per_minute: int = Field(1200, ge=1)
    concurrent_calls: int = Field(128, ge=1)
    # How long the head and the body of a request may take to arrive, token or not.
    header_timeout_s: int = Field(10, ge=1, le=600)
    body_timeout_s: int = Field(60, ge=1, le=3600)
    # Connections at once, at most half of the files that the process may open.
    max_connections: int = Field(512, ge=16)
    # Of these without a token, from one address; the oldest one makes room for the next.
    connections_per_address: int = Field(128, ge=1)


class Settings(Section):
    """Everything an operator can set."""

    data_dir: Path = Field(default_factory=lambda: Path(platformdirs.user_data_dir("nova-mcp", appauthor=False)))
    store: str | None = None
    tools: str = "core"
    tool_names: ToolNames = "dotted"
    text_only: bool = False
    output_schemas: bool = False
    keep_raw_urls: bool = False
    enable_eval: bool = False
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    browser: BrowserSettings = BrowserSettings()
    gates: GateSettings = GateSettings()
    retention: RetentionSettings = RetentionSettings()
    http: HttpSettings = HttpSettings()
    receipts: ReceiptSettings = ReceiptSettings()
    learning: LearningSettings = LearningSettings()
    tasks: TaskSettings = TaskSettings()
    notes: NoteSettings = NoteSettings()

    @property
    def store_url(self) -> str:
        return self.store or f"sqlite:///{self.data_dir / 'nova.db'}"

    @property
    def stop_file(self) -> Path:
        return self.data_dir / "STOP"

    @property
    def upload_roots(self) -> tuple[Path, ...]:
        """Folders whose files may be given to pages."""
        given = self.browser.upload_roots
        return (self.data_dir / "downloads", self.data_dir / "uploads") if given is None else given


# Environment names that do not follow the section path, kept because people know them.
_ENV_SHORTCUTS: Mapping[str, tuple[str, ...]] = {
    "NOVA_BROWSER": ("browser", "executable"),
    "NOVA_HEADED": ("browser", "headed"),
    "NOVA_CDP_ENDPOINT": ("browser", "cdp_endpoint"),
}


def environment_paths() -> dict[str, tuple[str, ...]]:
    """`NOVA_DATA_DIR`, `NOVA_HTTP_PORT`, …: every scalar entry by its path."""
    names = dict(_ENV_SHORTCUTS)
    for name, entry in Settings.model_fields.items():
        annotation = entry.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            for inner in annotation.model_fields:
                names.setdefault(f"{ENV_PREFIX}{name}_{inner}".upper(), (name, inner))
        else:
            names[f"{ENV_PREFIX}{name}".upper()] = (name,)
    return names


def secret_variables(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that hold secrets; they are no settings, so nothing prints them."""
    given = os.environ if environ is None else environ
    return {name: value for name, value in given.items() if name.startswith(SECRET_PREFIX)}


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
    tree[path[-1]] = value


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, path in environment_paths().items():
        if (text := environ.get(name)) is not None:
            listed = path[-1].endswith(("_hosts", "_origins", "_roots"))
            _put(tree, path, tuple(part for part in text.split(",") if part) if listed else text)
    return tree


def _merge(under: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), dict):
            merged[key] = _merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def _has_password(store: object) -> bool:
    return isinstance(store, str) and urlsplit(store).password is not None


def _require_own(config: Path, status: os.stat_result, *, holds_password: bool) -> None:
    """Refuse a file that another user could have written, or from which others could read a database's password.

    What it says decides which hosts are open, which program is started as the browser and where evidence goes.
    """
    if os.name == "nt":
        return
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid not in (os.getuid(), 0):
        raise SettingsError(f"{config} belongs to another user (uid {status.st_uid}). Write one of your own.")
    if mode & 0o022:
        raise SettingsError(f"{config} can be changed by others (mode {mode:04o}). Run: chmod 600 '{config}'")
    if holds_password and mode & 0o044:
        raise SettingsError(
            f"{config} can be read by others (mode {mode:04o}), and its store has a password. Run: chmod 600 '{config}'"
        )


def load_settings(flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the three sources; the data dir decides where the file is looked for."""
    given = _merge(_from_environment(os.environ if environ is None else environ), flags or {})
    data_dir = Path(given.get("data_dir") or Settings.model_fields["data_dir"].get_default(call_default_factory=True))
    config = data_dir.expanduser() / CONFIG_FILE
    from_file: dict[str, Any] = {}
    if config.is_file():
        try:
            with config.open("rb") as file:
                status = os.fstat(file.fileno())
                from_file = tomllib.load(file)
            _require_own(config, status, holds_password=_has_password(from_file.get("store")))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(f"{config}: {error}") from error
        if "data_dir" in from_file:
            raise SettingsError(f"{config}: data_dir can't be set in the file that lies in it")
    given["data_dir"] = data_dir.expanduser().absolute()
    try:
        return Settings.model_validate(_merge(from_file, given))
    except ValidationError as error:
        lines = "; ".join(f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in error.errors(include_url=False))
        raise SettingsError(f"configuration: {lines}") from error
