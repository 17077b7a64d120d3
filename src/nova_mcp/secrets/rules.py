"""Where a secret may be typed, and what a secrets file may say; pure."""

import re
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from nova_mcp.core.hosts import network_zone
from nova_mcp.core.policy import host_matches, is_host_pattern
from nova_mcp.core.urls import page_host, page_origin
from nova_mcp.secrets.model import Refused, Secret, Usable
from nova_mcp.settings import SECRET_PREFIX

NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
HOSTS_SUFFIX: Final = "_HOSTS"
MAX_VALUE_CHARS: Final = 10_000


class UnreadableSecrets(Exception):
    """The secrets file can't be taken as it is; the message names the place and never a value."""


class SecretEntry(BaseModel):
    """One table of the secrets file; without a value, the keyring or the environment has to have one."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    value: str | None = Field(None, min_length=1, max_length=MAX_VALUE_CHARS)
    hosts: tuple[str, ...] = Field((), max_length=100)

    @field_validator("hosts")
    @classmethod
    def _name_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for number, pattern in enumerate(hosts, 1):
            if not is_host_pattern(pattern):
                raise ValueError(f"entry {number} is not a host such as example.com or *.example.com")
        return hosts


def read_entries(table: Mapping[str, object]) -> dict[str, SecretEntry]:
    """The entries of a parsed secrets file."""
    entries: dict[str, SecretEntry] = {}
    for name, raw in table.items():
        if NAME.fullmatch(name) is None:
            raise UnreadableSecrets("a name may hold letters, digits, _ . - and 64 of them at most")
        try:
            entries[name] = SecretEntry.model_validate(raw)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False, include_context=False)
            told = "; ".join(f"{'.'.join(str(part) for part in p['loc']) or 'entry'}: {p['msg']}" for p in problems)
            raise UnreadableSecrets(f"[{name}] {told}") from None
    return entries


def folded(name: str) -> str:
    """The spelling of a name that a variable can have: `shop.login` is found in NOVA_SECRET_SHOP_LOGIN."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def read_variables(variables: Mapping[str, str]) -> dict[str, Secret]:
    """Secrets of the environment by their folded names."""
    found: dict[str, Secret] = {}
    for variable, value in variables.items():
        name = variable.removeprefix(SECRET_PREFIX)
        if name == variable or name.endswith(HOSTS_SUFFIX) or NAME.fullmatch(name) is None or not value:
            continue
        listed = variables.get(f"{variable}{HOSTS_SUFFIX}", "")
        hosts = tuple(host.strip() for host in listed.split(",") if is_host_pattern(host))
        found[folded(name)] = Secret(name, value, hosts, "environment")
    return found


def judge_secret(secret: Secret, top_url: str, frame_url: str) -> Usable | Refused:
    """Both the page and the frame that holds the field must be the secret's own hosts, reached privately."""
    if not secret.hosts:
        return Refused(
            "secret.host_mismatch",
            f'The secret "{secret.name}" lists no hosts, so it can be used nowhere.',
            f"Ask the person to add hosts to [{secret.name}] in secrets.toml, "
            f"or {SECRET_PREFIX}{folded(secret.name)}{HOSTS_SUFFIX}.",
        )
    for what, url in (("page", top_url), ("frame", frame_url)):
        host = page_host(url)
        if host is None or not host_matches(host.removesuffix("."), secret.hosts):
            shown = "no host" if host is None else f'"{host[:80]}"'
            return Refused(
                "secret.host_mismatch",
                f'The secret "{secret.name}" is not meant for this {what} ({shown}).',
                "Check that this is the right site; only the person who keeps the secret can add a host to it.",
            )
        if not _private(url, host):
            return Refused(
                "secret.insecure_origin",
                f'The {what} at "{host[:80]}" is not reached over https, so the secret "{secret.name}" stays here.',
                "Open the https address of the site.",
            )
    return Usable()


def _private(url: str, host: str) -> bool:
    return (page_origin(url) or "").startswith("https://") or network_zone(host) == "loopback"
