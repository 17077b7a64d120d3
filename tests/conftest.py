"""Settings for the whole suite."""

import os
from typing import Final

import pytest
from hypothesis import settings

# Steady runs judge a change; `HYPOTHESIS_PROFILE=explore` looks for cases nobody thought of.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Files run in this order, so that no worker is left alone with a long one at the end; what is not named comes last.
LONG_FIRST: Final = (
    *("cli/test_demo_command", "wire/test_real_", "docs/test_examples", "seeds/test_fault_site", "dashboard/test_in_"),
    *("dashboard/test_memory_in_", "browser/", "wire/", "attacks/", "cli/", "docs/", "seeds/", "golden/", "packaging/"),
    *("dashboard/", "stores/"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        file = item.nodeid.removeprefix("tests/")
        return next((index for index, start in enumerate(LONG_FIRST) if file.startswith(start)), len(LONG_FIRST))

    items.sort(key=place)
