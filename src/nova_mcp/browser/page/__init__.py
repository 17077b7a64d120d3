"""The scripts that run in a page's isolated world, joined in the order of their names."""

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from nova_mcp.core.page.consent_words import may_end
from nova_mcp.core.page.labels import folded

# The lists the page reads labels with; the others are read on the host only.
_COMMIT_LISTS: Final = ("send", "sign_in", "sign_up", "sign_out", "unsubscribe", "model_picker", "workspace_picker")
# Words of one alphabet travel as a letter that names it and one ASCII character for each of theirs.
_ALPHABETS: Final = {"G": (0x3B1, 0x3C9), "C": (0x430, 0x45F), "H": (0x5D0, 0x5EA), "A": (0x621, 0x64A)}


def load_bundle() -> str:
    """One self-contained program; running it twice in a document changes nothing."""
    body = "\n".join(lean(script.read_text(encoding="utf-8")) for script in page_scripts())
    data = files("nova_mcp.browser").joinpath("data")
    platforms, signs, looks = (
        json.dumps(json.loads(file.read_text("utf-8")), separators=(",", ":"))
        for file in (
            files("nova_mcp.core.page").joinpath("data/blocker_platforms.json"),
            data.joinpath("page_signs.json"),
            files("nova_mcp.core.page").joinpath("data/look_alikes.json"),
        )
    )
    alphabets = json.dumps({mark: first for mark, (first, _) in _ALPHABETS.items()})
    words = (
        f"const WORDS = {_words()};\nconst PLATFORMS = {platforms};\nconst SIGNS = {signs};\n"
        f"const LOOK_ALIKES = {looks};\nconst ALPHABETS = {alphabets};"
    )
    return f'(() => {{\n"use strict";\nif (Object.hasOwn(globalThis, "__nova")) return;\n{words}\n{body}\n}})();'


def page_scripts() -> list[Traversable]:
    """Every script; the numbers in their names put them in order, whichever folder they lie in."""
    folders = (folder for folder in files(__name__).iterdir() if folder.is_dir())
    found = (script for folder in folders for script in folder.iterdir() if script.name.endswith(".js"))
    return sorted(found, key=lambda script: script.name)


def lean(script: str) -> str:
    """The same script in fewer bytes, line for line, so that a line number still finds its place.

    Every tab carries the whole program over three processes. Whole-line comments and indentation are left out, which
    asks of the scripts that no template literal spans lines. One character beyond ASCII would double the size of it
    all inside the browser, so those are escaped.
    """
    lines = (line.strip() for line in script.split("\n"))
    return "\n".join("" if line.startswith("//") else escaped(line) for line in lines)


def escaped(line: str) -> str:
    """ASCII only; what is beyond stands in literals and patterns, where an escape means the same."""
    if line.isascii():
        return line
    units = line.encode("utf-16-be")
    codes = (units[at] << 8 | units[at + 1] for at in range(0, len(units), 2))
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


def packed(name: str, lists: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The phrases of each language as they are compared; a > marks a language whose phrases may end a label."""
    return {
        f"{language}>" if may_end(name, language) else language: "|".join(
            map(_spelt, dict.fromkeys(map(folded, texts)))
        )
        for language, texts in lists.items()
    }


def _spelt(phrase: str) -> str:
    return " ".join(map(_in_ascii, phrase.split(" ")))


def _in_ascii(word: str) -> str:
    for mark, (first, last) in _ALPHABETS.items():
        if all(first <= ord(one) <= last for one in word):
            return mark + "".join(chr(ord(one) - first + 0x40) for one in word)
    return word


def _words() -> str:
    data = files("nova_mcp.browser").joinpath("data")

    def read(name: str, package: str = "nova_mcp.browser") -> dict[str, dict[str, list[str]]]:
        found: dict[str, dict[str, list[str]]] = json.loads(files(package).joinpath("data", name).read_text("utf-8"))
        return found

    commits = read("commit_words.json")
    # What counts only as a whole label is left to the host, which tells it from a part of one.
    lists = {
        name: {language: [one for one in texts if one[0] != "="] for language, texts in commits[name].items()}
        for name in _COMMIT_LISTS
    }
    lists |= read("auth_words.json") | read("chat_words.json") | read("outcome_words.json")
    lists |= read("consent_words.json", "nova_mcp.core.page") | read("blocker_words.json")
    lists["error"] = json.loads(data.joinpath("error_words.json").read_text("utf-8"))
    return json.dumps({name: packed(name, one) for name, one in lists.items()}, separators=(",", ":"))


# What each registered scan consists of; another source needs another id.
_TEXT_WALKS: Final = "scans/99_coverage.js"
SCAN_SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "nova_full_page_text_v1": (_TEXT_WALKS, "scans/99_scan_text.js"),
    "nova_i18n_spellcheck_v1": (_TEXT_WALKS, "scans/99_scan_i18n.js"),
    "nova_structured_dom_v1": (_TEXT_WALKS, "scans/99_scan_structure.js"),
}
# A text that was read as a whole comes from here.
READING_SOURCES: Final = ("read/50_reading.js",)


@functools.cache
def source_hash(names: tuple[str, ...]) -> str:
    """Stands for scripts as they are written, in this order."""
    digest = hashlib.sha256()
    for name in names:
        digest.update(files(__name__).joinpath(name).read_bytes())
    return f"sha256:{digest.hexdigest()}"


def scan_hash(scan_id: str) -> str:
    return source_hash(SCAN_SOURCES[scan_id])
