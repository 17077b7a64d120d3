"""`nova demo`: every step happens, and the exit code says so."""

import pytest
from cli_kit import nova_process


@pytest.mark.browser
def test_the_demo_goes_as_it_should_and_says_so() -> None:
    done = nova_process("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✗" not in done.stdout
    assert "chapters went as they should" in done.stdout
