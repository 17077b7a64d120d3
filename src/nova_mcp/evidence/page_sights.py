"""What the host knows of the page a call ended on, beyond what its record keeps; only derivations read it."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class PageLife:
    """Signs of life of one target apart from calls: page activity, and moments its page was left or closed."""

    active_at_ms: tuple[int, ...] = ()
    left_at_ms: tuple[int, ...] = ()


STILL = PageLife()


@dataclass(frozen=True, slots=True)
class Sight:
    """The page that a call ended on, or began on where it ended on none.

    `url` is its whole normal form, `redirected` are the hashes of addresses that led here and differ in spelling only,
    `steady` says that the call began on the very document it ended on.
    """

    url: str
    url_hash: str
    path_hash: str
    http_status: int | None = None
    error_page: bool = False
    # An agent's own script had run in this document.
    agent_scripted: bool = False
    steady: bool = True
    redirected: tuple[str, ...] = ()
    life: PageLife = STILL
    # The address may be remembered: nothing in it looks like a secret.
    keepable: bool = True


Hydration = Literal["stable", "unstable", "unchecked"]


@dataclass(frozen=True, slots=True)
class Channels:
    """What a scan has taken besides the skeleton."""

    visible_text: bool = False
    aria_labels: bool = False
    inputs: bool = False
    alt_text: bool = False

    @property
    def complete(self) -> bool:
        return self.visible_text and self.aria_labels and self.inputs and self.alt_text


@dataclass(frozen=True, slots=True)
class ScanMeasures:
    """What a scan measured; characters are counted without blanks, the measured ones by a read of their own.

    `frames` are visible frames of the page's own origin, `opaque_frames` those of others, which nobody can look into.
    `whole` is false where the page was too large to be taken in.
    """

    url_hash: str
    url_changed: bool = False
    failed: bool = False
    hydration: Hydration = "unchecked"
    http_status: int | None = None
    extracted_chars: int = 0
    measured_chars: int = 0
    nodes: int = 0
    iframes: int = 0
    frames: int = 0
    opaque_frames: int = 0
    shadow_roots: int = 0
    whole: bool = True
    channels: Channels = Channels()
    shadow_included: bool = True
    frames_included: bool = True


@dataclass(frozen=True, slots=True)
class ScanSeen:
    """A registered scan on its way into the store. `asks_channels` is false for a text that was read as a whole."""

    scan_id: str
    scan_hash: str
    measures: ScanMeasures
    skeleton: str | None = None
    links: tuple[str, ...] = ()
    asks_channels: bool = True


@dataclass(frozen=True, slots=True)
class Credit:
    """What a scan came to in one run; `unit_key` is empty where the run has no such unit."""

    instance_id: str
    unit_key: str | None
    eligible: bool
    reason_code: str
    remaining: int
    next_url: str | None


@dataclass(frozen=True, slots=True)
class ScanHint:
    """A page of an exhaustive run was read in a way that covers nothing."""

    instance_id: str
    unit_key: str
    scan_id: str
