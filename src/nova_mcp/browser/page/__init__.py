"""The scripts that run in a page's isolated world, joined in the order of their names."""

import json
from importlib.resources import files
from typing import Final

# The lists the page reads labels with; the others are read on the host only.
_COMMIT_LISTS: Final = ("send", "sign_in", "sign_up", "sign_out", "unsubscribe", "model_picker", "workspace_picker")


def load_bundle() -> str:
    """One self-contained program; running it twice in a document changes nothing."""
    scripts = sorted((entry for entry in files(__name__).iterdir() if entry.name.endswith(".js")), key=lambda e: e.name)
    body = "\n".join(script.read_text(encoding="utf-8") for script in scripts)
    words = f"const WORDS = {_words()};"
    return f'(() => {{\n"use strict";\nif (Object.hasOwn(globalThis, "__nova")) return;\n{words}\n{body}\n}})();'


def _words() -> str:
    data = files("nova_mcp.browser").joinpath("data")

    def read(name: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(data.joinpath(name).read_text("utf-8"))
        return found

    commits = read("commit_words.json")
    lists = {name: commits[name] for name in _COMMIT_LISTS}
    for name in ("auth_words.json", "chat_words.json", "outcome_words.json"):
        lists |= read(name)
    return json.dumps({**lists, "error": read("error_words.json")})
