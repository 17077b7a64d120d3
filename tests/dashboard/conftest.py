"""A dashboard per test."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from dashboard_kit import Stand, stand


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Stand]:
    with stand(tmp_path / "data") as found:
        yield found
