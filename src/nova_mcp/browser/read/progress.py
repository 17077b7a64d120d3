"""How far a text has been read that is handed out in pieces; pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadOn:
    """A text that is being read piece by piece, and up to where without a gap."""

    content_hash: str
    url: str
    upto: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text that was handed out."""

    content_hash: str
    url: str
    start: int
    end: int


def advanced(known: ReadOn | None, piece: Piece) -> ReadOn:
    """Where a reader stands after a piece; another text or another page begins anew, a gap stays one."""
    same = known is not None and (known.content_hash, known.url) == (piece.content_hash, piece.url)
    upto = known.upto if same and known is not None else 0
    return ReadOn(piece.content_hash, piece.url, max(upto, piece.end) if piece.start <= upto else upto)
