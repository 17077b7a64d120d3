"""Serving one version of a site on loopback, and getting to its pages; two sites write their pages themselves."""

import functools
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

from playwright.async_api import Page

from bench.django_admin import VERSIONS, running_admin
from bench.django_server import ADMIN, PASSWORD
from bench.names_pages import Package, served, unpacked
from bench.repair_sites import Site

GROUPS: Final = ("Editors", "Readers", "Reviewers")
USERS: Final = (("ada", "Ada", "Lovelace", 1), ("bob", "Bob", "Kahn", 0), ("cyd", "Cyd", "Holberton", 0))
DJANGO: Final = {**VERSIONS, "4.2": ("Django==4.2.*", "asgiref", "sqlparse")}
LOGIN: Final = "/admin/login/"
OPERATIONS: Final = ".opblock, li.operation"
LOAD_MS: Final = 20_000


def _parameter(name: str, place: str, kind: str = "string") -> dict[str, object]:
    return {"name": name, "in": place, "type": kind, "required": place == "path"}


def _operation(tag: str, summary: str, *parameters: dict[str, object]) -> dict[str, object]:
    done = {"200": {"description": "done"}}
    return {"tags": [tag], "summary": summary, "parameters": list(parameters), "responses": done}


LIBRARY_API: Final[Mapping[str, object]] = {
    "swagger": "2.0",
    "info": {"title": "Library", "version": "1.0", "contact": {"email": "desk@library.example"}},
    "paths": {
        "/books": {
            "get": _operation("books", "Search the shelves", _parameter("title", "query"), _parameter("year", "query")),
            "post": _operation("books", "Add a book", _parameter("title", "formData"), _parameter("isbn", "formData")),
        },
        "/books/{isbn}": {
            "get": _operation("books", "Look a book up", _parameter("isbn", "path")),
            "delete": _operation("books", "Take a book out of the catalogue", _parameter("isbn", "path")),
        },
        "/loans": {
            "get": _operation("loans", "Who has what", _parameter("reader", "query")),
            "post": _operation(
                "loans", "Lend a book", _parameter("reader", "formData"), _parameter("isbn", "formData")
            ),
        },
        "/readers/{number}": {
            "put": _operation("readers", "Change an address", _parameter("number", "path", "integer"))
        },
    },
}

SWAGGER_PAGE: Final = """<!doctype html><meta charset=utf-8><title>Library</title>
<link rel=stylesheet href=swagger-ui.css><div id=swagger-ui></div><script src=swagger-ui-bundle.js></script>
<script src=swagger-ui-standalone-preset.js></script>
<script>SwaggerUIBundle({url: "/library.json", dom_id: "#swagger-ui", docExpansion: "EXPANSION", validatorUrl: null,
presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset], layout: "StandaloneLayout"})</script>"""


def _swagger_pages(root: Path) -> dict[str, str]:
    """The second version has a page of its own that only needs to be told; the later ones are given one."""
    made = {"/library.json": json.dumps(LIBRARY_API)}
    own = (root / "index.html").read_text(encoding="utf-8")
    old = "window.swaggerUi" in own
    for shape in ("list", "full"):
        if old:
            made[f"/{shape}.html"] = own.replace(
                '"http://petstore.swagger.io/v2/swagger.json"', 'location.origin + "/library.json"'
            ).replace('docExpansion: "none"', f'docExpansion: "{shape}", validatorUrl: null')
        else:
            made[f"/{shape}.html"] = SWAGGER_PAGE.replace("EXPANSION", shape)
    return made


class _Overlaid(SimpleHTTPRequestHandler):
    """A folder, and some files that are not in it."""

    def __init__(self, *args: Any, made: Mapping[str, str], directory: str) -> None:
        self._made = made
        super().__init__(*args, directory=directory)

    def log_message(self, *args: object) -> None:
        return

    def do_GET(self) -> None:
        text = self._made.get(self.path.split("?", 1)[0])
        if text is None:
            super().do_GET()
            return
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if self.path.endswith(".json") else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def _overlaid(root: Path, made: Mapping[str, str]) -> Iterator[str]:
    handler = functools.partial(_Overlaid, made=made, directory=str(root))
    listener = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_address[1]}"
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()


def _fill(database: Path) -> None:
    columns = "username, first_name, last_name, is_staff, password, email, is_superuser, is_active, date_joined"
    with closing(sqlite3.connect(database, timeout=10)) as db, db:
        db.executemany("insert into auth_group (name) values (?)", [(name,) for name in GROUPS])
        db.executemany(
            f"insert into auth_user ({columns}) values (?, ?, ?, ?, '!', '', 0, 1, '2024-01-02 03:04:05')", USERS
        )


@contextmanager
def serving(site: Site, version: int) -> Iterator[str]:
    """The address of one version of a site."""
    number, folder = site.versions[version]
    if site.package == "Django":
        with running_admin(number, DJANGO[number]) as lab:
            _fill(lab.database)
            yield lab.base_url
        return
    package = site.package if site.name != "swagger-ui" or folder else "swagger-ui-dist"
    root = unpacked(Package(package, number, "")) / folder
    with _overlaid(root, _swagger_pages(root)) if site.name == "swagger-ui" else served(root) as base:
        yield base


async def reach(page: Page, base: str, path: str) -> None:
    """To a page of the site: through the sign-in where there is one, and until it has written itself."""
    await page.goto(f"{base}/{path.removeprefix('/')}", wait_until="load", timeout=LOAD_MS)
    if LOGIN in page.url and LOGIN not in path:
        await page.fill("#id_username", ADMIN)
        await page.fill("#id_password", PASSWORD)
        await page.click("[type=submit]")
        await page.wait_for_url(f"{base}{path}", wait_until="load", timeout=LOAD_MS)
    if path in ("list.html", "full.html"):
        await page.wait_for_selector(OPERATIONS, timeout=LOAD_MS)
