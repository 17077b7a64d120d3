"""Kill switches: what an operator has turned off, everywhere or for one site."""

from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import BigInteger, Column, Connection, Table, Text, delete, select
from sqlalchemy import text as sql

from nova_mcp.core.hosts import ascii_host, is_ip, under
from nova_mcp.storage.schema import metadata

SwitchFamily = Literal["closed_loop.commit", "apply"]
KillScope = Literal["global", "domain"]
FAMILIES: Final[tuple[SwitchFamily, ...]] = ("closed_loop.commit", "apply")
FORMS: Final = tuple(f"{family}.kill.{scope}" for family in FAMILIES for scope in ("global", "domain.<host>"))

kill_switch = Table(
    "kill_switch",
    metadata,
    Column("name", Text, primary_key=True),
    Column("set_at_ms", BigInteger, nullable=False),
    Column("set_by", Text, nullable=False),
    Column("note", Text, nullable=False),
)


class UnknownSwitch(ValueError):
    """No switch has that name; the message says which ones there are."""

    def __init__(self, name: str) -> None:
        super().__init__(f'"{name[:120]}" is no kill switch; there are {", ".join(FORMS)}')


@dataclass(frozen=True, slots=True)
class SwitchName:
    """What a switch turns off; no scope means everywhere."""

    family: SwitchFamily
    scope: str | None = None

    def __str__(self) -> str:
        return f"{self.family}.kill.global" if self.scope is None else f"{self.family}.kill.domain.{self.scope}"


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch that is set."""

    name: SwitchName
    set_at_ms: int
    set_by: str
    note: str


def parse_switch(text: str) -> SwitchName:
    """The switch of that name, its host in the form browsers keep; UnknownSwitch for anything else."""
    for family in FAMILIES:
        rest = text.strip().removeprefix(f"{family}.kill.")
        if rest == text.strip():
            continue
        if rest == "global":
            return SwitchName(family)
        if rest.startswith("domain.") and (host := _host(rest.removeprefix("domain."))) is not None:
            return SwitchName(family, host)
    raise UnknownSwitch(text)


def _host(text: str) -> str | None:
    host = ascii_host(text.strip())
    # A trailing dot names the same machine, and a switch must not be dodged by one.
    return None if host is None else host.removesuffix(".") or None


_SET = sql(
    "INSERT INTO kill_switch (name, set_at_ms, set_by, note) VALUES (:name, :set_at_ms, :set_by, :note) "
    "ON CONFLICT (name) DO NOTHING"
)


def set_switch(conn: Connection, switch: Switch) -> bool:
    """Turn it off; False when it was off already, and then the first note stays."""
    values = {
        "name": str(switch.name),
        "set_at_ms": switch.set_at_ms,
        "set_by": switch.set_by,
        "note": switch.note,
    }
    return conn.execute(_SET, values).rowcount == 1


def clear_switch(conn: Connection, name: SwitchName) -> bool:
    """Turn it on again; False when it was not off."""
    return conn.execute(delete(kill_switch).where(kill_switch.c.name == str(name))).rowcount == 1


def switches(conn: Connection) -> list[Switch]:
    """Everything that is turned off."""
    rows = conn.execute(select(kill_switch).order_by(kill_switch.c.name))
    return [Switch(parse_switch(row.name), row.set_at_ms, row.set_by, row.note) for row in rows]


def killed(conn: Connection, family: SwitchFamily, host: str | None) -> KillScope | None:
    """Which switch stops that family on a host; a page without a host is stopped by the global one only."""
    names = set(
        conn.execute(
            select(kill_switch.c.name).where(kill_switch.c.name.startswith(f"{family}.kill.", autoescape=True))
        ).scalars()
    )
    scopes = {name.removeprefix(f"{family}.kill.domain.") for name in names if ".kill.domain." in name}
    if f"{family}.kill.global" in names:
        return "global"
    canonical = None if host is None else _host(host)
    if canonical is None:
        return None
    covered = canonical in scopes if is_ip(canonical) else any(under(canonical, scope) for scope in scopes)
    return "domain" if covered else None


def commit_kill(conn: Connection, host: str | None) -> KillScope | None:
    """Which switch stops commits on a host."""
    return killed(conn, "closed_loop.commit", host)


def apply_kill(conn: Connection, host: str | None) -> KillScope | None:
    """Which switch stops applying what was learned on a host."""
    return killed(conn, "apply", host)
