"""Short ids of frames: what is given out means one frame or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.channel.frame_ids import SHOWN_CHARS, shown_id, whole_id

IDS = st.text("0123456789ABCDEF", min_size=32, max_size=32)


@given(st.sets(IDS, min_size=1, max_size=30))
def test_an_id_that_was_given_out_means_its_frame_unless_two_begin_alike(ids):
    for one in ids:
        alike = [other for other in ids if other.startswith(shown_id(one))]
        assert whole_id(one, ids) == one
        assert whole_id(shown_id(one), ids) == (one if len(alike) == 1 else None)


@pytest.mark.parametrize("given_id", ["", "A", "A" * (SHOWN_CHARS - 1), "B" * SHOWN_CHARS, "A" * 33])
def test_other_texts_mean_no_frame(given_id):
    assert whole_id(given_id, ["A" * 32]) is None


def test_two_frames_that_begin_alike_are_told_apart_by_their_whole_ids_only():
    ids = ["A" * 31 + "1", "A" * 31 + "2"]
    assert whole_id("A" * SHOWN_CHARS, ids) is None
    assert whole_id(ids[1], ids) == ids[1]
