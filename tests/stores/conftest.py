"""Both kinds of store for every contract test, the PostgreSQL one on a private cluster."""

import importlib.util
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench.postgres import private_cluster
from lending import Lender
from sqlalchemy import create_engine

from nova_mcp.storage.engine import Database

HERE = Path(__file__).parent


def _load_worker():
    spec = importlib.util.spec_from_file_location("store_worker", HERE / "worker.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


worker_module = _load_worker()


@pytest.fixture(scope="session")
def postgres_cluster():
    with private_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("migrated") / "nova.db"
    Database.open(f"sqlite:///{path}").close_sync()
    return path


@pytest.fixture
def sqlite_url(tmp_path, migrated_file):
    return f"sqlite:///{shutil.copy(migrated_file, tmp_path)}"


@pytest.fixture(scope="session")
def lender(postgres_cluster):
    lender = Lender(postgres_cluster)
    yield lender
    lender.close()


@pytest.fixture
def postgres_url(lender):
    return lender.lend()


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
