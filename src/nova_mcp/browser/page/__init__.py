"""The scripts that run in a page's isolated world, joined in the order of their names."""

from importlib.resources import files


def load_bundle() -> str:
    """One self-contained program; running it twice in a document changes nothing."""
    scripts = sorted((entry for entry in files(__name__).iterdir() if entry.name.endswith(".js")), key=lambda e: e.name)
    body = "\n".join(script.read_text(encoding="utf-8") for script in scripts)
    return f'(() => {{\n"use strict";\nif (Object.hasOwn(globalThis, "__nova")) return;\n{body}\n}})();'
