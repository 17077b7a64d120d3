"""`nova import`: takes a knowledge pack in, as something that nobody here has seen yet."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.store.open_store import opened, opened_for_writing
from nova_mcp.cli.terminal import (
    EXIT_CONFIGURATION,
    EXIT_FAILED,
    fail,
    note,
    print_json,
    print_table,
    say,
    size,
    visible,
)
from nova_mcp.core.clock import SystemClock
from nova_mcp.memory.promotion.import_pack import Intake, Taken, Why, name_of, take_in
from nova_mcp.secrets.store import open_secrets
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database
from nova_mcp.tools.knowledge.pack import MAX_BYTES, BadPack, Pack, PackLine, read_pack

app = typer.Typer(add_completion=False)

_REASONS: dict[Why, str] = {
    "in_review_here": "another content is in review here; --replace takes the pack's instead",
    "retired_here": "it was retired here, and only a page that shows it brings it back",
    "categories_here": "the site is already described here",
    "site_unknown": "nothing else is known of the site",
}


@app.command()
def import_pack(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A pack that `nova export` wrote; - reads it from stdin.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Let the pack's content replace what is still in review here.")
    ] = False,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Take a knowledge pack in: entries start in review, and what is known here stays.

    Exit code 2: the file is no sound pack and nothing was written. Exit code 1: some entries were refused.
    """
    settings = read_settings(data_dir, store)
    intake = Intake(SystemClock().now_ms(), replace, dry_run)
    pack = _read(file, intake.now_ms, settings.data_dir)
    with _rehearsed(settings) if dry_run else opened_for_writing(settings, create=True) as database:
        done = [one for taken in _take_in(database, pack, intake) for one in taken]
    _print(done, dry_run=dry_run, json=json)
    if any(one.came == "refused" for one in done):
        raise typer.Exit(EXIT_FAILED)


def _rehearsed(settings: Settings) -> AbstractContextManager[Database]:
    """A store that is there and up to date already: a dry run writes, and takes all of it back."""
    with opened(settings):
        pass
    return opened_for_writing(settings)


# -- reading


def _read(file: str, now_ms: int, data_dir: Path) -> Pack:
    try:
        data = _bytes(file)
    except OSError as error:
        fail(f"{file} can't be read: {error.strerror or error}", code=EXIT_CONFIGURATION)
    if len(data) > MAX_BYTES:
        fail(
            f"{file} is larger than {size(MAX_BYTES)}",
            "split it: every part begins with the first line",
            EXIT_CONFIGURATION,
        )
    try:
        return read_pack(data.decode("utf-8"), now_ms, open_secrets(data_dir).redactor.text)
    except UnicodeDecodeError as error:
        fail(f"{file} is not UTF-8 text (byte {error.start})", "packs come from `nova export`", EXIT_CONFIGURATION)
    except BadPack as bad:
        _fail(file, bad)


def _bytes(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with Path(file).open("rb") as opened_file:
        return opened_file.read(MAX_BYTES + 1)


def _fail(file: str, bad: BadPack) -> NoReturn:
    for one in bad.problems:
        note(visible(f"{file}:{one.line}: {one.message}"))
    fail(
        f"{file} is not a sound knowledge pack; nothing was taken", "correct it, or export it again", EXIT_CONFIGURATION
    )


# -- taking in


def _take_in(database: Database, pack: Pack, intake: Intake) -> Iterator[tuple[Taken, ...]]:
    """Site by site, so that servers wait for one site at a time."""
    for scope, lines in pack.sites().items():
        yield tuple(_refused(one) for one in lines if one.problems)
        fine = [one.packed for one in lines if not one.problems]
        if fine:
            yield database.write_sync(take_in, scope, fine, intake)


def _refused(line: PackLine) -> Taken:
    return Taken(line.scope, name_of(line.packed), "refused", problems=line.problems)


# -- telling


def _print(done: list[Taken], *, dry_run: bool, json: bool) -> None:
    counts = Counter(one.came for one in done)
    if json:
        print_json(
            {"ok": not counts["refused"], "dryRun": dry_run, **_counts(counts), "entries": list(map(_row, done))}
        )
        return
    print_table(("site", "entry", "result", "why"), [(one.scope, _name(one), _result(one), _why(one)) for one in done])
    told = ", ".join(f"{count} {name}" for name, count in _counts(counts).items() if count) or "nothing to take in"
    say(f"\n{told}{' (dry run: nothing was written)' if dry_run else ''}")


def _counts(counts: Counter[Any]) -> dict[str, int]:
    return {name: counts[name] for name in ("created", "updated", "unchanged", "kept", "refused")}


def _name(one: Taken) -> str:
    return one.stable_id or "(service categories)"


def _result(one: Taken) -> str:
    return f"{one.came}, a revision in review beside the active one" if one.beside_active else one.came


def _why(one: Taken) -> str:
    if one.problems:
        first = one.problems[0]
        return f"{first.code}: {first.where + ': ' if first.where else ''}{first.message}"
    if one.why is not None:
        return _REASONS[one.why]
    return f"{one.unseen} selectors to be seen on a page first" if one.unseen else ""


def _row(one: Taken) -> dict[str, Any]:
    return {
        "scope": one.scope,
        "id": one.stable_id or None,
        "result": one.came,
        "level": one.level,
        "revision": one.revision,
        "besideActive": one.beside_active,
        "unconfirmedSelectors": one.unseen,
        "reason": one.why,
        "problems": [{"code": each.code, "where": each.where, "message": each.message} for each in one.problems],
    }
