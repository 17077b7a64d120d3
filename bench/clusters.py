"""A private PostgreSQL for measurements, the same way the store tests start theirs."""

import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

STORE_TESTS = Path(__file__).parent.parent / "tests" / "stores" / "conftest.py"


def _store_tests() -> Any:
    spec = importlib.util.spec_from_file_location("bench_store_tests", STORE_TESTS)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{STORE_TESTS} can't be read")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def private_postgres() -> Iterator[str | None]:
    """The address of an empty database; None where no server is installed."""
    kit = _store_tests()
    folders = [folder for folder in kit._bin_folders() if (folder / "initdb").exists()]
    if not folders:
        yield None
        return
    binaries, account = folders[0], kit._server_account()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nova-pg-", dir="/tmp")))
        if not kit._reachable_by(account, binaries):
            lent = folder / "install"
            shutil.copytree(binaries.parent, lent, symlinks=True)
            binaries = lent / "bin"
        cluster = kit.Cluster(binaries, folder, account)
        stack.callback(cluster.stop)
        yield cluster.fresh_database()
