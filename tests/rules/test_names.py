"""Tool names in every spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.tools.names import canonical_name, published_name


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        ("nova.perceive", "nova.perceive"),
        ("nova_perceive", "nova.perceive"),
        ("perceive", "nova.perceive"),
        ("page_info", "nova.page_info"),
        ("nova_page_info", "nova.page_info"),
        ("nova.page_info", "nova.page_info"),
        ("mcp__nova__nova.page_info", "nova.page_info"),
        ("mcp__nova__nova_page_info", "nova.page_info"),
        ("mcp__nova__page_info", "nova.page_info"),
        ("mcp__my-browser__nova_page_info", "nova.page_info"),
        ("mcp__my__browser__nova.page_info", "nova.page_info"),
        ("mcp__plugin_nova_nova__page_info", "nova.page_info"),
        ("nova_nova_page_info", "nova.page_info"),
        (" nova.perceive ", "nova.perceive"),
        ("", "nova."),
        ("nova", "nova.nova"),
        ("Nova.perceive", "nova.Nova.perceive"),
    ],
)
def test_a_spelling_means_the_canonical_name(raw: str, canonical: str):
    assert canonical_name(raw) == canonical


tool_words = st.from_regex(r"[a-z][a-z0-9]*(_[a-z0-9]+){0,3}", fullmatch=True).filter(
    lambda word: not word.startswith("nova_")
)
server_names = st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True)


@given(tool_words, server_names)
def test_every_prefix_a_client_adds_comes_off(word: str, server: str):
    wanted = f"nova.{word}"
    for bare in (word, f"nova.{word}", f"nova_{word}"):
        assert canonical_name(bare) == wanted
        assert canonical_name(f"mcp__{server}__{bare}") == wanted


@given(st.text(max_size=60))
def test_reducing_a_name_twice_changes_nothing_more(raw: str):
    once = canonical_name(raw)
    assert once.startswith("nova.")
    assert canonical_name(once) == once


@given(tool_words, st.sampled_from(["dotted", "underscore"]))
def test_what_is_published_can_be_called(word: str, spelling):
    published = published_name(f"nova.{word}", spelling)
    assert canonical_name(published) == f"nova.{word}"
    if spelling == "underscore":
        assert "." not in published
