"""Templates: everything is escaped unless it is markup that this package built itself."""

from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.responses import HTMLResponse

from nova_mcp import __version__
from nova_mcp.dashboard import formatting
from nova_mcp.server.http.dashboard_home import ROOT

STATIC: Final = {
    "nova.css": "text/css; charset=utf-8",
    "memory.css": "text/css; charset=utf-8",
    "nova.js": "text/javascript; charset=utf-8",
}


@pass_context
def _when(context: Context, at_ms: int | None) -> Markup:
    """A moment in both ways: the time in UTC, and how long ago that was."""
    if at_ms is None:
        return Markup("–")
    now_ms = context["now_ms"]
    return Markup(
        '<time class="when" datetime="{}" title="{} UTC">{} <span class="ago" data-ms="{}">{}</span></time>'
    ).format(
        formatting.iso(at_ms),
        formatting.moment(at_ms),
        formatting.clock(at_ms, now_ms),
        at_ms,
        formatting.ago(at_ms, now_ms),
    )


@pass_context
def _ago(context: Context, at_ms: int | None) -> Markup:
    if at_ms is None:
        return Markup("–")
    return Markup('<time class="ago" datetime="{}" title="{} UTC" data-ms="{}">{}</time>').format(
        formatting.iso(at_ms), formatting.moment(at_ms), at_ms, formatting.ago(at_ms, context["now_ms"])
    )


class Renderer:
    """One environment for all pages, and the files that they load."""

    def __init__(self) -> None:
        folder = files("nova_mcp.dashboard") / "static"
        self.static = {name: (folder / name).read_bytes() for name in STATIC}
        self.stamp = sha256(b"".join(self.static[name] for name in sorted(STATIC))).hexdigest()[:12]
        self._environment = Environment(
            loader=PackageLoader("nova_mcp.dashboard"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(
            when=_when,
            ago=_ago,
            moment=formatting.moment,
            lasting=formatting.lasting,
            brief=formatting.brief,
            share=formatting.share,
            plain=formatting.plain,
            tool=formatting.tool_name,
        )
        self._environment.globals.update(root=ROOT, version=__version__, static=self._address)

    def _address(self, name: str) -> str:
        """The stamp changes with the content, so that browsers may keep what they have."""
        return f"{ROOT}/static/{self.stamp}/{name}"

    def text(self, template: str, values: Mapping[str, object]) -> str:
        return self._environment.get_template(template).render(values)

    def page(self, template: str, values: Mapping[str, object], status: int = 200) -> HTMLResponse:
        return HTMLResponse(self.text(template, values), status)
