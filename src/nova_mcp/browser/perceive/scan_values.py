"""What the page script answers, read into values: elements, forms, layers and the page around them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from nova_mcp.browser.perceive.elements import ElementFacts
from nova_mcp.core.values import Json

Answer: TypeAlias = Mapping[str, Any]
# An element's frame and its number inside that frame's document.
Spot: TypeAlias = tuple[str, int]
Region: TypeAlias = Literal["", "nav", "footer", "aside"]
AuthStage: TypeAlias = Literal[
    "public_page", "login_wall", "identity_step", "federated_login", "mfa_challenge", "authenticated", "unknown"
]


@dataclass(frozen=True, slots=True)
class SeenField:
    """One field of a form."""

    tag: str
    type: str
    name: str
    label: str
    autocomplete: str
    card: bool = False


@dataclass(frozen=True, slots=True)
class SeenForm:
    """A form, or the region that stands for one.

    `headings` are what it is called, `addresses` the identifiers it goes by, `button` what its own button reads.
    """

    node: int
    is_form: bool
    search: bool
    method: str
    action: str
    name: str
    fields: tuple[SeenField, ...] = ()
    enter_posts: bool = False
    headings: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    button: tuple[str, ...] = ()


# Not frozen for the same reason as the facts in it: a look makes thousands.
@dataclass(slots=True, unsafe_hash=True)
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
    # Scrolled out of the frame it stands in.
    clipped: bool = False
    # Shut off by a modal dialog.
    behind: bool = False
    region: Region = ""
    next_page: bool = False
    # What it reads besides its name, a text a line; and what the dialog around it asks.
    reads: str = ""
    question: str = ""
    near_card: bool = False
    changes: bool = False
    # Filling or leaving it submits a form by script.
    fills: bool = False

    @property
    def spot(self) -> Spot:
        return self.facts.frame, self.node


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
    # "light" or "dark" where its ground says so, else empty.
    theme: str = ""


@dataclass(frozen=True, slots=True)
class SeenFrame:
    """A frame in the page; `scanned` when its elements are among those of the look."""

    frame_id: str
    origin: str
    rect: tuple[int, int, int, int]
    same_origin: bool
    scanned: bool
    # The address and the number of the look, for what is asked of the frame afterwards.
    url: str = ""
    look: int = 0


@dataclass(frozen=True, slots=True)
class SeenBlocker:
    """A layer over the page, and the controls on it whose meaning is known."""

    kind: str
    blocking: bool | None
    name: str
    element: SeenElement
    controls: Mapping[str, SeenElement]
    # The nodes of all its controls.
    inside: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class AuthSurface:
    """What a page shows about being signed in; None means that it can't be told."""

    stage: AuthStage
    logged_in: bool | None
    login_wall_visible: bool | None
    mfa_challenge: bool | None
    auth_error: bool | None


@dataclass(frozen=True, slots=True)
class Scan:
    """A whole look at a page and the frames in it."""

    page: SeenPage
    elements: tuple[SeenElement, ...]
    total: int
    truncated: bool
    forms: Mapping[Spot, SeenForm]
    headings: tuple[SeenHeading, ...]
    landmarks: tuple[SeenLandmark, ...]
    layers: tuple[SeenLayer, ...]
    closed_roots: int
    frames: tuple[SeenFrame, ...] = ()
    blockers: tuple[SeenBlocker, ...] = ()
    auth: AuthSurface | None = None
    look: int = 0

    def url_of(self, frame: str) -> str:
        return next((seen.url for seen in self.frames if seen.frame_id == frame), "") if frame else self.page.url

    def look_of(self, frame: str) -> int:
        return next((seen.look for seen in self.frames if seen.frame_id == frame), 0) if frame else self.look


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
        reads=get("reads", ""),
        question=get("question", ""),
        near_card=get("nearCard", False),
        changes=get("changes", False),
        fills=get("fills", False),
    )


def read_form(raw: Answer) -> SeenForm:
    fields = tuple(
        SeenField(f["tag"], f["type"], f["name"], f["label"], f["autocomplete"], f["card"]) for f in raw["fields"]
    )
    return SeenForm(
        raw["n"],
        raw["isForm"],
        raw["search"],
        raw["method"],
        raw["action"],
        raw["name"],
        fields,
        raw["enterPosts"],
        *(tuple(raw.get(part, ())) for part in ("headings", "addresses", "button")),
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
        theme=raw.get("theme", ""),
    )


def read_layers(raw: Answer) -> tuple[SeenLayer, ...]:
    return tuple(SeenLayer(item["n"], item["role"], item["name"], item["modal"]) for item in raw["layers"])


def read_auth_surface(raw: Answer) -> AuthSurface:
    return AuthSurface(
        stage=raw["stage"],
        logged_in=raw["loggedIn"],
        login_wall_visible=raw["loginWallVisible"],
        mfa_challenge=raw["mfaChallenge"],
        auth_error=raw["authError"],
    )


def read_blockers(raw: Answer) -> tuple[SeenBlocker, ...]:
    return tuple(
        SeenBlocker(
            kind=item["kind"],
            blocking=item["blocking"],
            name=item["name"],
            element=read_element(item["element"]),
            controls={what: read_element(facts) for what, facts in item["controls"].items() if facts is not None},
            inside=frozenset(item["inside"]),
        )
        for item in raw["blockers"]
    )


def read_found(raw: Answer | None) -> Found | None:
    return None if raw is None else Found(raw["selector"], raw["kind"])
