"""The program every page gets: lean on the way, and the same program."""

import re
from collections import Counter

from nova_mcp.browser.page import escaped, lean, load_bundle, page_scripts

SCRIPTS = page_scripts()
# A backtick in the character class that opens a pattern opens nothing else.
CHARACTER_CLASS = re.compile(r"/\[[^\]\n]*\]")


def test_the_program_is_ascii_so_that_the_browser_keeps_it_in_one_byte_a_character():
    assert load_bundle().isascii()


def test_a_line_keeps_its_number():
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        assert lean(text).count("\n") == text.count("\n"), script.name


def test_only_whole_line_comments_and_indentation_go():
    assert lean('  // why\n  const a = "// not a comment"; // kept\n') == '\nconst a = "// not a comment"; // kept\n'


def test_no_template_spans_lines_for_its_indentation_would_be_lost():
    for script in SCRIPTS:
        for number, line in enumerate(script.read_text(encoding="utf-8").split("\n"), 1):
            if not line.strip().startswith("//"):
                assert CHARACTER_CLASS.sub("", line).count("`") % 2 == 0, f"{script.name}:{number}"


def test_characters_beyond_ascii_become_the_escapes_of_their_utf16_units():
    assert escaped('"…🗙"') == '"\\u2026\\ud83d\\uddd9"'


def test_no_two_scripts_declare_the_same_name_for_they_share_one_scope():
    declared = Counter(
        name
        for script in SCRIPTS
        for name in re.findall(
            r"^(?:const|let|class|(?:async )?function\*?) (\w+)", script.read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    assert [name for name, count in declared.items() if count > 1] == []
