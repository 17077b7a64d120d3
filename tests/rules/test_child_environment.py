"""What Chromium and its driver learn of the server's environment: an allow-list, nothing by default."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.egress import system_proxy
from nova_mcp.browser.process.child_environment import child_environment

USUAL = {
    "PATH": "/usr/bin",
    "HOME": "/home/ada",
    "LC_ALL": "C.UTF-8",
    "DISPLAY": ":0",
    "https_proxy": "http://proxy.example:3128",
    "NO_PROXY": "localhost",
}
SECRET = {
    "NOVA_SECRET_SHOP": "x",
    "NOVA_STORE": "postgresql://nova@db/nova",
    "PGPASSWORD": "x",
    "DATABASE_URL": "postgresql://u:p@db/x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "GITHUB_TOKEN": "x",
    "NODE_OPTIONS": "--require /tmp/x.js",
    "LD_PRELOAD": "/tmp/x.so",
    "ALL_PROXY": "http://u:p@proxy.example:3128",
    "http_proxy": "u:p@proxy.example:3128",
}


def test_only_what_a_browser_needs_is_passed_on() -> None:
    assert child_environment({**USUAL, **SECRET}) == USUAL


@given(st.dictionaries(st.text(min_size=1).map(lambda name: f"X_{name}"), st.text()))
def test_a_name_that_is_not_listed_is_never_passed_on(unknown: dict[str, str]) -> None:
    assert child_environment(unknown) == {}


@pytest.mark.parametrize("name", ["KRB5CCNAME", "GITHUB_TOKEN"])
def test_an_operator_can_name_more(name: str) -> None:
    assert child_environment({**SECRET, name: "y"}, (name,)) == {name: "y"}


@pytest.mark.parametrize(
    ("proxy", "expected"),
    [("http://proxy.example:3128", "http://proxy.example:3128"), ("http://agent:secret@proxy.example:3128", None)],
)
def test_a_proxy_that_the_browser_is_not_told_of_leaves_its_requests_to_the_judged_way_out(
    monkeypatch: pytest.MonkeyPatch, proxy: str, expected: str | None
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    assert system_proxy() == expected
    assert ("HTTPS_PROXY" in child_environment(os.environ)) is (expected is not None)
