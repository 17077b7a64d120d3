"""Words of texts are compared in one spelling."""

from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.core.keywords import STOPWORDS, cut, folded, has_word, plain, words


def test_filler_single_letters_and_signs_are_no_words():
    assert words("Please check the e-mail_address, and der Warenkorb x 42") == (
        "check",
        "mail",
        "address",
        "warenkorb",
        "42",
    )


def test_a_word_counts_once_and_named_words_are_left_out():
    assert words("Cart CART ｃａｒｔ shop.example", without=("shop", "example")) == ("cart",)


def test_a_word_is_found_whole_only():
    assert has_word("a shipping note", "shipping")
    assert has_word("(shipping)", "shipping")
    assert not has_word("reshipping shippings", "shipping")
    assert has_word("reshipping, then shipping_cost", "shipping")


@given(st.text())
def test_folding_twice_changes_nothing(text: str):
    assert folded(folded(text)) == folded(text)
    assert plain(plain(text)) == plain(text)


@given(st.text())
def test_every_word_of_a_text_is_found_in_it(text: str):
    for word in words(text):
        assert has_word(folded(text), word)
        assert len(word) > 1
        assert word not in STOPWORDS


@given(st.text(), st.integers(1, 40))
def test_a_cut_text_has_room_and_shows_that_it_was_cut(text: str, most: int) -> None:
    short = cut(text, most)
    assert len(short) <= most
    assert short == text if len(text) <= most else short.endswith("…") and text.startswith(short[:-1])
    assert cut(short, most) == short
