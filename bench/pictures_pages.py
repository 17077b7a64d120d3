"""Which pages the dashboard has, which address shows most of each, and how light a picture can be; pure."""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit

from PIL import Image
from starlette.routing import compile_path

from nova_mcp.server.http.dashboard_home import ROOT

MOST_BYTES: Final = 150_000
# Fewer colours until a picture is light enough; pages are flat, so that nobody sees it.
COLOURS: Final = (256, 128, 64)
# A page with pictures has more to show than its text says.
PICTURE_WORTH: Final = 20_000
# A filtered view stands for its place only if it shows clearly more than the plain one.
CLEARLY_MORE: Final = 1.15


@dataclass(frozen=True, slots=True)
class Look:
    """What a page leads to and how much it has to show."""

    leads_to: tuple[str, ...]
    pictures: tuple[str, ...]
    worth: int


@dataclass(slots=True)
class _Form:
    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)


class _Reader(HTMLParser):
    """Links, pictures and forms that only ask; such a form is sent as it stands."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.pictures: list[str] = []
        self._form: _Form | None = None
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        match tag:
            case "a" if "href" in found:
                self.links.append(found["href"])
            case "img" if "src" in found:
                self.pictures.append(found["src"])
            case "form" if found.get("method", "get").lower() == "get":
                self._form = _Form(found.get("action", ""))
            case "input" if self._form is not None and found.get("type") not in ("checkbox", "radio"):
                self._form.fields.append((found.get("name", ""), found.get("value", "")))
            case "select":
                self._select = found.get("name", "")
            case "option" if self._form is not None and self._select:
                self._form.fields.append((self._select, found.get("value", "")))
                self._select = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self._form is not None:
            asked = urlencode([(name, value) for name, value in self._form.fields if name])
            self.links.append(f"{self._form.action}?{asked}")
            self._form = None


def look_at(html: str, base: str) -> Look:
    reader = _Reader()
    reader.feed(html)
    links, pictures = ([urljoin(base, one) for one in found] for found in (reader.links, reader.pictures))
    inside = dict.fromkeys(_whole(one) for one in links if _below(one, base))
    return Look(tuple(inside), tuple(pictures), len(html) + PICTURE_WORTH * len(pictures))


def _whole(address: str) -> str:
    return urlunsplit(urlsplit(address)._replace(fragment=""))


def _below(address: str, base: str) -> bool:
    there, here = urlsplit(address), urlsplit(base)
    return there.netloc == here.netloc and there.path.startswith(f"{ROOT}/")


def picture_name(path: str, section: str) -> str:
    """From an address as the dashboard writes it: `/tasks/runs/{id}` becomes `tasks-runs-one`."""
    words = ["one" if part.startswith("{") else part for part in path.split("/") if part]
    return "-".join(words) or section


def place_of(address: str, paths: Iterable[str]) -> str | None:
    """The place that answers an address; an exact one before one with a name in it."""
    path = urlsplit(address).path.removeprefix(ROOT)
    for known in sorted(paths, key=lambda one: "{" in one):
        if compile_path(known)[0].match(path):
            return known
    return None


def best(worth: Mapping[str, int]) -> str | None:
    """The address with most to show; the plain one of a place unless another shows clearly more."""
    richest = max(worth, key=lambda address: worth[address], default=None)
    plain = max((one for one in worth if not urlsplit(one).query), key=lambda one: worth[one], default=None)
    if richest is None or plain is None:
        return richest
    return richest if worth[richest] > CLEARLY_MORE * worth[plain] else plain


def lighter(png: bytes) -> bytes:
    """The same picture in few colours and as few bytes as that takes."""
    with Image.open(io.BytesIO(png)) as taken:
        whole = taken.convert("RGB")
    for colours in COLOURS:
        out = io.BytesIO()
        few = whole.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        few.save(out, "PNG", optimize=True)
        if out.tell() <= MOST_BYTES:
            break
    return out.getvalue()
