"""What a sandbox is told to be when it is made."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traits:
    """How a sandbox is named and what it pretends to be; nothing means as everybody else."""

    name: str | None = None
    purpose: str | None = None
    account_label: str | None = None
    locale: str | None = None
    timezone: str | None = None
    viewport: tuple[int, int] | None = None


PLAIN = Traits()
