"""Whatever a page holds, an answer can be written."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.server.json_values import clean_json, clean_text

any_text = st.text(st.characters(exclude_categories=()), max_size=30)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
)


@given(any_json)
def test_every_value_can_be_written_afterwards(value):
    json.dumps(clean_json(value), ensure_ascii=False, allow_nan=False).encode()


@given(st.text(max_size=30))
def test_sound_text_is_left_alone(text: str):
    assert clean_text(text) == text


@given(any_json)
def test_cleaning_twice_changes_nothing_more(value):
    once = clean_json(value)
    assert clean_json(once) == once


def test_only_numbers_that_json_lacks_are_dropped():
    assert clean_json([math.inf, -math.inf, math.nan, 0.0, 10**30]) == [None, None, None, 0.0, 10**30]
