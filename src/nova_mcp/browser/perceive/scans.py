"""A look as the page script writes it, read into one list: frames that were asked stand where their element stands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from nova_mcp.browser.perceive.elements import ElementFacts
from nova_mcp.browser.perceive.scan_values import (
    Answer,
    Region,
    Scan,
    SeenElement,
    SeenForm,
    SeenFrame,
    SeenHeading,
    SeenLandmark,
    SeenLayer,
    Spot,
    read_form,
    read_layers,
    read_page,
)

COLUMNS: Final = 21
# The same bits as in the page script.
VISIBLE, DIALOG, MODAL, MAIN, NAV, CONTROL, PRIMARY, LINK, UNIQUE = (1 << bit for bit in range(9))
NEAR_COMPOSER, COMPOSER, SUBMITTER, POSTS = (1 << bit for bit in range(9, 13))
FOOTER, ASIDE, NEXT, CHANGES, CARD = (1 << bit for bit in range(19, 24))
_FLAGS_FROM: Final = 13
_FLAGS: Final = ("disabled", "checked", "expanded", "required", "invalid", "newtab")
_FLAG_SETS: Final = tuple(
    tuple(flag for bit, flag in enumerate(_FLAGS) if number >> bit & 1) for number in range(1 << len(_FLAGS))
)
MAX_ELEMENTS: Final = 5000
MAX_LAYERS: Final = 5


@dataclass(frozen=True, slots=True)
class Holding:
    """How a document is held: the page itself by nothing, a frame's by its element in another document."""

    frame: str = ""
    left: float = 0
    top: float = 0
    scale: float = 1
    # What of the frame can be seen, in its own pixels; None for the page itself.
    window: tuple[int, int] | None = None
    bits: int = 0
    behind: bool = False


PAGE: Final = Holding()


@dataclass(slots=True)
class _Gathered:
    elements: list[SeenElement] = field(default_factory=list)
    forms: dict[Spot, SeenForm] = field(default_factory=dict)
    headings: list[SeenHeading] = field(default_factory=list)
    layers: list[SeenLayer] = field(default_factory=list)
    frames: list[SeenFrame] = field(default_factory=list)
    total: int = 0
    truncated: bool = False
    closed_roots: int = 0


def read_scan(raw: Answer) -> Scan:
    """The whole look. Frames that were asked stand where their element stands; others are only listed."""
    gathered = _Gathered()
    _gather(raw, PAGE, gathered)
    return Scan(
        page=read_page(raw),
        elements=tuple(gathered.elements[:MAX_ELEMENTS]),
        total=gathered.total,
        truncated=gathered.truncated or len(gathered.elements) > MAX_ELEMENTS,
        forms=gathered.forms,
        headings=tuple(gathered.headings),
        landmarks=tuple(SeenLandmark(item["role"], item["name"]) for item in raw["landmarks"]),
        layers=tuple(gathered.layers[:MAX_LAYERS]),
        closed_roots=gathered.closed_roots,
        frames=tuple(gathered.frames),
        look=raw["look"],
    )


def _gather(raw: Answer, holding: Holding, gathered: _Gathered) -> None:
    layers = read_layers(raw)
    shut = holding.behind or any(layer.modal for layer in layers)
    own = list(read_rows(raw["rows"], raw["texts"], holding, shut=shut))
    gathered.forms.update({(holding.frame, item["n"]): read_form(item) for item in raw["forms"]})
    gathered.headings.extend(SeenHeading(item["level"], item["text"]) for item in raw["headings"])
    gathered.layers.extend(layers)
    gathered.total += raw["total"]
    gathered.truncated = gathered.truncated or raw["scanTruncated"]
    gathered.closed_roots += raw["closedRoots"]
    done = 0
    for frame in raw["frames"]:
        gathered.elements.extend(own[done : frame["before"]])
        done = max(done, frame["before"])
        _gather_frame(frame, holding, gathered, shut=shut)
    gathered.elements.extend(own[done:])


def _gather_frame(frame: Answer, outer: Holding, gathered: _Gathered, *, shut: bool) -> None:
    if not frame["id"]:
        return
    inner = frame["scan"]
    left, top = outer.left + frame["x"] * outer.scale, outer.top + frame["y"] * outer.scale
    size = round(frame["w"] * outer.scale), round(frame["h"] * outer.scale)
    gathered.frames.append(
        SeenFrame(
            frame_id=frame["id"],
            origin=frame.get("origin") or (inner["origin"] if inner else ""),
            rect=(round(left), round(top), *size),
            same_origin=frame["same"],
            scanned=inner is not None,
            url=inner["url"] if inner else "",
            look=inner["look"] if inner else 0,
        )
    )
    if inner is None:
        return
    holding = Holding(
        frame=frame["id"],
        left=left,
        top=top,
        scale=outer.scale * frame["scale"],
        window=(inner["viewport"][0], inner["viewport"][1]),
        bits=outer.bits | frame["bits"],
        behind=shut and not frame["bits"] & MODAL,
    )
    _gather(inner, holding, gathered)


def read_rows(rows: Sequence[int], texts: Sequence[str], holding: Holding, *, shut: bool) -> Iterator[SeenElement]:
    """Elements from the flat list of numbers; `shut` when a modal dialog is open in their document or around it."""
    frame, outer = holding.frame, holding.bits
    columns: Any = [iter(rows)] * COLUMNS
    rows_of_numbers = zip(*columns, strict=True)
    for node, own, tag, role, name, kind, id_, testid, given, href, row, value, x, y, w, h, *others in rows_of_numbers:
        form, says, menu, reads, question = others
        bits = own | outer
        box, clipped = ((x, y, w, h), False) if holding.window is None else _placed((x, y, w, h), holding)
        yield SeenElement(
            node,
            ElementFacts(
                texts[tag],
                texts[role],
                texts[name],
                texts[kind],
                texts[id_],
                texts[testid],
                texts[given],
                texts[href],
                texts[row],
                frame,
            ),
            texts[value],
            _FLAG_SETS[own >> _FLAGS_FROM & 63],
            bool(own & VISIBLE),
            box,
            bool(bits & DIALOG),
            bool(bits & MODAL),
            bool(bits & MAIN),
            bool(bits & NAV),
            form,
            bool(own & CONTROL),
            bool(own & PRIMARY),
            bool(own & LINK),
            bool(own & UNIQUE),
            bool(own & NEAR_COMPOSER),
            bool(own & COMPOSER),
            texts[menu],
            texts[says],
            bool(own & SUBMITTER),
            bool(own & POSTS),
            clipped,
            holding.behind or (shut and not own & MODAL),
            _region(bits),
            bool(own & NEXT),
            texts[reads],
            texts[question],
            bool(own & CARD),
            bool(own & CHANGES),
        )


def _region(bits: int) -> Region:
    if not bits & NAV:
        return ""
    return "footer" if bits & FOOTER else "aside" if bits & ASIDE else "nav"


def _placed(box: tuple[int, int, int, int], holding: Holding) -> tuple[tuple[int, int, int, int], bool]:
    """Where a box of a frame lies on the page, and whether it is scrolled out of the frame."""
    x, y, w, h = box
    width, height = holding.window or (0, 0)
    clipped = x >= width or y >= height or x + w <= 0 or y + h <= 0
    scale = holding.scale
    return (
        round(holding.left + x * scale),
        round(holding.top + y * scale),
        round(w * scale),
        round(h * scale),
    ), clipped


def origin_of(url: str) -> str:
    """The origin an address stands for; addresses without one, such as data:, are named by their scheme."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else f"{parts.scheme}:" if parts.scheme else ""


def frames_in(raw: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every frame of a look as the script wrote it, outer ones first."""
    for frame in raw["frames"]:
        yield frame
        if frame["scan"] is not None:
            yield from frames_in(frame["scan"])
