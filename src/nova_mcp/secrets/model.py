"""What a secret is, and the verdicts on its use."""

from dataclasses import dataclass, field
from typing import Literal

from nova_mcp.errors import PolicyDenied

Source = Literal["file", "keyring", "environment"]
RefusalReason = Literal["secret.host_mismatch", "secret.insecure_origin"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A value under a name; `hosts` are exact names or `*.domain`. The value is in no printed form of it."""

    name: str
    value: str = field(repr=False)
    hosts: tuple[str, ...] = ()
    source: Source = "file"


@dataclass(frozen=True, slots=True)
class Usable:
    """The secret may be typed there."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The secret must not be typed there."""

    reason_code: RefusalReason
    message: str
    hint: str

    def error(self) -> PolicyDenied:
        return PolicyDenied(self.reason_code, self.message, self.hint)
