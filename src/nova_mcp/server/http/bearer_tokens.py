"""Who may speak over HTTP: bearer tokens, the principals they stand for, and the file that holds them."""

import hmac
import json
import os
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

FILE_NAME = "mcp.json"
DEFAULT_PRINCIPAL = "local"
_NAME = r"^[A-Za-z0-9._:-]{1,64}$"
_PRINTABLE = r"^[\x21-\x7e]{16,512}$"


class TokenFileError(Exception):
    """The token file can't be trusted or read; the message says what to do."""


class NamedToken(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=_NAME)
    token: str = Field(pattern=_PRINTABLE, repr=False)


class TokenFile(BaseModel):
    """`mcp.json`: where the server listens, the token made on first start, and any further ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    endpoint: str
    token: str = Field(pattern=_PRINTABLE, repr=False)
    principal: str = Field(DEFAULT_PRINCIPAL, pattern=_NAME)
    tokens: tuple[NamedToken, ...] = ()

    @model_validator(mode="after")
    def _distinct(self) -> "TokenFile":
        every = self.named()
        if len({entry.name for entry in every}) < len(every):
            raise ValueError("two tokens have the same name")
        if len({entry.token for entry in every}) < len(every):
            raise ValueError("two names have the same token")
        return self

    def named(self) -> tuple[NamedToken, ...]:
        return (NamedToken(name=self.principal, token=self.token), *self.tokens)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the server checks against, and where a person finds it."""

    path: Path
    tokens: tuple[NamedToken, ...]


def bearer(header: str | None) -> str | None:
    """The token of an `Authorization` header."""
    scheme, _, token = (header or "").strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def verify(presented: str | None, tokens: Sequence[NamedToken]) -> str | None:
    """The principal a token stands for. Every token is compared, in time that depends on none of them."""
    given = sha256((presented or "").encode("utf-8", "replace")).digest()
    found: str | None = None
    for entry in tokens:
        if hmac.compare_digest(given, sha256(entry.token.encode()).digest()):
            found = entry.name
    return found if presented else None


def load_credentials(data_dir: Path, endpoint: str) -> Credentials:
    """Read the token file, or make it; keeps the endpoint in it up to date."""
    path = data_dir / FILE_NAME
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        stored = _read(path)
    except FileNotFoundError:
        stored = TokenFile(endpoint=endpoint, token=secrets.token_urlsafe(32))
        try:
            _create(path, stored)
        except FileExistsError:
            # Another server was started at the same moment; its token is as good.
            stored = _read(path)
    if stored.endpoint != endpoint:
        stored = stored.model_copy(update={"endpoint": endpoint})
        _replace(path, stored)
    return Credentials(path, stored.named())


def read_token_file(data_dir: Path) -> TokenFile:
    """What the last server wrote; FileNotFoundError when none ran here yet."""
    return _read(data_dir / FILE_NAME)


def _read(path: Path) -> TokenFile:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TokenFileError(f"{path} can't be read: {error.strerror}. Move it away to get a new token.") from error
    with os.fdopen(descriptor, "rb") as file:
        _check_privacy(path, os.fstat(file.fileno()))
        raw = file.read(1024 * 1024)
    try:
        return TokenFile.model_validate(json.loads(raw))
    except ValidationError as error:
        # The input is left out: it holds tokens.
        problems = error.errors(include_url=False, include_input=False)
        told = "; ".join(f"{'.'.join(str(p) for p in e['loc']) or 'file'}: {e['msg']}" for e in problems)
        raise TokenFileError(f"{path}: {told}. Correct it, or move it away to get a new token.") from None
    except ValueError:
        raise TokenFileError(f"{path} is not JSON. Correct it, or move it away to get a new token.") from None


def _check_privacy(path: Path, status: os.stat_result) -> None:
    if os.name == "nt":
        return
    if not stat.S_ISREG(status.st_mode):
        raise TokenFileError(f"{path} is not a regular file. Move it away to get a new token.")
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise TokenFileError(
            f"{path} can be read by others (mode {mode:04o}), so its tokens may be known. "
            f"Run: chmod 600 '{path}' (or delete the file to get a new token)."
        )
    if status.st_uid not in (os.getuid(), 0):
        raise TokenFileError(f"{path} belongs to another user (uid {status.st_uid}). Move it away to get a new token.")


def _create(path: Path, content: TokenFile) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(_dump(content))


def _replace(path: Path, content: TokenFile) -> None:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    _create(beside, content)
    beside.replace(path)


def _dump(content: TokenFile) -> bytes:
    return json.dumps(content.model_dump(mode="json"), indent=2).encode() + b"\n"
