"""What the page script answers, read into values: elements, forms, layers and the page around them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from nova_mcp.browser.elements import ElementFacts
from nova_mcp.observation.model import Json

Answer: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SeenField:
    """One field of a form."""

    tag: str
    type: str
    name: str
    label: str
    autocomplete: str


@dataclass(frozen=True, slots=True)
class SeenForm:
    """A form, or the region that stands for one."""

    node: int
    is_form: bool
    search: bool
    method: str
    action: str
    name: str
    fields: tuple[SeenField, ...] = ()
    enter_posts: bool = False


@dataclass(frozen=True, slots=True)
class SeenElement:
    """One element at the moment of the look; `node` is its number inside that document."""

    node: int
    facts: ElementFacts
    value: str = ""
    flags: tuple[str, ...] = ()
    visible: bool = True
    box: tuple[int, int, int, int] = (0, 0, 0, 0)
    in_dialog: bool = False
    in_modal: bool = False
    in_main: bool = False
    in_nav: bool = False
    form: int = 0
    is_control: bool = False
    is_primary: bool = False
    is_link: bool = False
    is_unique: bool = False
    near_composer: bool = False
    composer: bool = False
    picker_label: str = ""
    # What an element without a role says that is made to be pressed all the same.
    says: str = ""
    submits: bool = False
    posts: bool = False


@dataclass(frozen=True, slots=True)
class SeenHeading:
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class SeenLandmark:
    role: str
    name: str


@dataclass(frozen=True, slots=True)
class SeenLayer:
    """An open dialog inside the page."""

    node: int
    role: str
    name: str
    modal: bool


@dataclass(frozen=True, slots=True)
class SeenPage:
    """The document itself."""

    url: str
    origin: str
    title: str
    ready_state: str
    lang: str
    viewport: tuple[int, int]
    above_px: int
    below_px: int


@dataclass(frozen=True, slots=True)
class Scan:
    """A whole look at one document."""

    page: SeenPage
    elements: tuple[SeenElement, ...]
    total: int
    truncated: bool
    forms: Mapping[int, SeenForm]
    headings: tuple[SeenHeading, ...]
    landmarks: tuple[SeenLandmark, ...]
    layers: tuple[SeenLayer, ...]
    closed_roots: int


@dataclass(frozen=True, slots=True)
class Found:
    """A selector the page checked, and what kind it is."""

    selector: str
    kind: str


def answer(value: Json) -> Answer:
    """The script answers with objects, large ones as text; anything else is a defect of the script."""
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, dict):
        raise TypeError("the page script answered without an object")
    return cast(Answer, value)


def read_facts(raw: Answer, frame: str = "") -> ElementFacts:
    """Identity of an element; the script leaves out what is empty."""
    get = raw.get
    return ElementFacts(
        tag=raw["tag"],
        role=get("role", ""),
        name=get("name", ""),
        type=get("type", ""),
        id=get("id", ""),
        testid=get("testid", ""),
        name_attr=get("nameAttr", ""),
        href_path=get("href", ""),
        row_key=get("row", ""),
        frame=frame,
    )


def facts_to_page(facts: ElementFacts) -> dict[str, Json]:
    """The same facts in the script's spelling, for it to compare with the live element."""
    return {
        "tag": facts.tag,
        "role": facts.role,
        "name": facts.name,
        "type": facts.type,
        "id": facts.id,
        "testid": facts.testid,
        "nameAttr": facts.name_attr,
        "href": facts.href_path,
        "row": facts.row_key,
    }


def read_element(raw: Answer, frame: str = "") -> SeenElement:
    left, top, width, height = raw["box"]
    get = raw.get
    return SeenElement(
        node=raw["n"],
        facts=read_facts(raw, frame),
        value=get("value", ""),
        flags=tuple(get("flags", ())),
        visible=get("visible", False),
        box=(left, top, width, height),
        in_dialog=get("dialog", False),
        in_modal=get("modal", False),
        in_main=get("main", False),
        in_nav=get("nav", False),
        form=get("form", 0),
        is_control=get("control", False),
        is_primary=get("primary", False),
        is_link=get("link", False),
        is_unique=get("unique", False),
        near_composer=get("nearComposer", False),
        composer=get("composer", False),
        picker_label=get("menuName", ""),
        says=get("says", ""),
        submits=get("submitter", False),
        posts=get("posts", False),
    )


def read_form(raw: Answer) -> SeenForm:
    fields = tuple(SeenField(f["tag"], f["type"], f["name"], f["label"], f["autocomplete"]) for f in raw["fields"])
    return SeenForm(
        raw["n"], raw["isForm"], raw["search"], raw["method"], raw["action"], raw["name"], fields, raw["enterPosts"]
    )


def read_page(raw: Answer) -> SeenPage:
    width, height = raw["viewport"]
    return SeenPage(
        url=raw["url"],
        origin=raw["origin"],
        title=raw["title"],
        ready_state=raw["readyState"],
        lang=raw["lang"],
        viewport=(width, height),
        above_px=raw["scroll"]["above"],
        below_px=raw["scroll"]["below"],
    )


def read_layers(raw: Answer) -> tuple[SeenLayer, ...]:
    return tuple(SeenLayer(item["n"], item["role"], item["name"], item["modal"]) for item in raw["layers"])


def read_scan(raw: Answer, frame: str = "") -> Scan:
    return Scan(
        page=read_page(raw),
        elements=tuple(read_element(item, frame) for item in raw["elements"]),
        total=raw["total"],
        truncated=raw["scanTruncated"],
        forms={item["n"]: read_form(item) for item in raw["forms"]},
        headings=tuple(SeenHeading(item["level"], item["text"]) for item in raw["headings"]),
        landmarks=tuple(SeenLandmark(item["role"], item["name"]) for item in raw["landmarks"]),
        layers=read_layers(raw),
        closed_roots=raw["closedRoots"],
    )


def read_found(raw: Answer | None) -> Found | None:
    return None if raw is None else Found(raw["selector"], raw["kind"])
