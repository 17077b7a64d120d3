"""Platforms met on many sites: the large consent vendors, how they are known, and what a sighting may draft; pure."""

import functools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Final

from nova_mcp.core.hosts import under
from nova_mcp.memory.knowledge.model import (
    CANDIDATE,
    MAX_FALLBACKS,
    Action,
    Alias,
    Content,
    Fingerprint,
    Phenomenon,
    Platform,
    PlatformId,
    Playbook,
    Problem,
    Signal,
    StableId,
    VerifyStep,
)
from nova_mcp.memory.knowledge.scopes import scope_of
from nova_mcp.memory.knowledge.writes.content_rules import hides_something, holds_script, holds_secret
from nova_mcp.memory.knowledge.writes.stability import breadth

PLATFORM_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]{1,63}")
MAX_PATTERNS: Final = 20
_MIN_CONFIDENCE: Final = 0.5


def _pattern_signals(roots: Sequence[str]) -> tuple[Signal, ...]:
    return tuple(Signal("dom", root) for root in roots)


def _platform(entry: dict[str, Any], layer: dict[str, Any]) -> Platform:
    roots = tuple(layer["roots"])
    hosts = (Alias("script_host", host) for host in entry.get("scriptHosts", ()))
    marks = (Alias("dom_marker", root) for root in roots)
    return Platform(
        stable_id=PlatformId(entry["stableId"]),
        display_name=layer["name"],
        patterns=_pattern_signals(roots)[:MAX_PATTERNS],
        aliases=(*hosts, *marks),
        homepage_url=entry.get("homepageUrl"),
        built_in=True,
        # What lies in a frame of its own can't be named by a selector of the page.
        refusing=() if layer.get("frames") else tuple(layer.get("reject", ())),
        roots=roots,
    )


@functools.cache
def built_in() -> tuple[Platform, ...]:
    """The shipped templates. What a layer looks like stands with the browser; here it gets its id and script hosts."""
    layers = json.loads(files("nova_mcp.core.page").joinpath("data/blocker_platforms.json").read_text("utf-8"))
    named = {layer["name"]: layer for layer in layers["platforms"]}
    entries = json.loads(files("nova_mcp.memory.knowledge").joinpath("data/platforms.json").read_text("utf-8"))
    return tuple(_platform(entry, named[entry["layer"]]) for entry in entries["platforms"])


def recognised(
    platforms: Iterable[Platform], script_hosts: Iterable[str], dom_markers: Iterable[str]
) -> tuple[Platform, ...]:
    """Platforms that a page shows by a script's host or a mark; a host below a known one counts."""
    hosts, marks = [host.lower() for host in script_hosts], set(dom_markers)

    def seen(alias: Alias) -> bool:
        if alias.kind == "dom_marker":
            return alias.value in marks
        return any(under(host, alias.value) for host in hosts)

    return tuple(one for one in platforms if any(map(seen, one.aliases)))


def drafted(platform: Platform, now_ms: int) -> Phenomenon:
    """What a sighting on a new site leaves there: a candidate, nothing more."""
    signals = (Signal("vendor", platform.stable_id), *platform.patterns)
    playbook = Playbook("warn")
    if platform.refusing:
        first, *more = platform.refusing
        press = Action("click", first, tuple(more[:MAX_FALLBACKS]), polarity="reject")
        gone = (VerifyStep("absent", root) for root in platform.roots[:1])
        playbook = Playbook("reject_preferred", (press,), (*gone, VerifyStep("obstruction_cleared", threshold=0.0)))
    content = Content("consent_cmp", Fingerprint(signals, _MIN_CONFIDENCE), playbook)
    return Phenomenon(
        stable_id=StableId(f"cmp_{platform.stable_id}"),
        content=content,
        level=CANDIDATE,
        created_at_ms=now_ms,
        updated_at_ms=now_ms,
        baseline=frozenset(signals),
        unconfirmed=tuple(dict.fromkeys((*platform.roots, *platform.refusing[: MAX_FALLBACKS + 1]))),
    )


@dataclass(frozen=True, slots=True)
class Seeded:
    platform: Platform
    patterns_upserted: int
    aliases_upserted: int


def _owner(alias: Alias, platforms: Iterable[Platform], own: PlatformId) -> Platform | None:
    return next((one for one in platforms if one.stable_id != own and alias in one.aliases), None)


def _text_problem(wish: Platform) -> Problem | None:
    texts = [one.match for one in wish.patterns] + [one.value for one in wish.aliases] + [wish.display_name]
    if any(map(holds_script, (*texts, wish.homepage_url or ""))):
        return Problem("pks.script_content", "Script is never stored, in any field.")
    if any(holds_secret(one, selector=True) for one in texts):
        return Problem("pks.secret_like", "A platform has nothing to keep secret.")
    if any(map(hides_something, texts)):
        return Problem("invalid_params", "It holds characters that nobody would see.")
    hosts = [one.value for one in wish.aliases if one.kind == "script_host"]
    shared = next((one for one in hosts if "." not in one or scope_of(one) != one), None)
    if shared is not None:
        return Problem(
            "pks.selector_too_broad", f'"{shared[:80]}" is no host of one vendor; as an alias it says nothing.'
        )
    marks = [one.value for one in wish.aliases if one.kind == "dom_marker"]
    marks += [one.match for one in wish.patterns if one.kind == "dom"]
    broad = next((one for one in marks if breadth(one) is not None), None)
    if broad is not None:
        return Problem("pks.selector_too_broad", f'"{broad[:80]}" would make every site this platform.')
    return None


def seeded(wish: Platform, known: Sequence[Platform]) -> Seeded | Problem:
    """A platform added by hand to what is known; shipped ones and others' aliases stay."""
    if PLATFORM_ID.fullmatch(wish.stable_id) is None:
        return Problem("invalid_params", "stableId is lower case letters, digits, - and _, 2 to 64 of them.")
    if not wish.patterns and not wish.aliases:
        return Problem("invalid_params", "A platform is known by patterns or aliases; give at least one.")
    if len(wish.patterns) > MAX_PATTERNS or len(wish.aliases) > MAX_PATTERNS:
        return Problem("invalid_params", f"At most {MAX_PATTERNS} patterns and as many aliases.")
    found = next((one for one in known if one.stable_id == wish.stable_id), None)
    if found is not None and found.built_in:
        return Problem("pks.builtin_platform", f"{wish.stable_id} is built in and can't be changed.")
    if (problem := _text_problem(wish)) is not None:
        return problem
    for alias in wish.aliases:
        if (owner := _owner(alias, known, wish.stable_id)) is not None:
            return Problem("pks.alias_taken", f"{alias.value} already stands for {owner.stable_id}.")
    old = found or replace(wish, patterns=(), aliases=())
    patterns = tuple(dict.fromkeys((*old.patterns, *wish.patterns)))
    aliases = tuple(dict.fromkeys((*old.aliases, *wish.aliases)))
    if len(patterns) > MAX_PATTERNS or len(aliases) > MAX_PATTERNS:
        return Problem("invalid_params", f"At most {MAX_PATTERNS} patterns and as many aliases.")
    merged = replace(wish, patterns=patterns, aliases=aliases, homepage_url=wish.homepage_url or old.homepage_url)
    return Seeded(merged, len(patterns) - len(old.patterns), len(aliases) - len(old.aliases))
