"""Where secrets come from: a private file, the system's keyring, the environment, in this order."""

import logging
import os
import stat
import threading
import tomllib
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import anyio.to_thread

from nova_mcp.errors import NotFound
from nova_mcp.secrets.model import Secret, Usable
from nova_mcp.secrets.redactor import Redactor
from nova_mcp.secrets.rules import (
    SecretEntry,
    UnreadableSecrets,
    folded,
    judge_secret,
    read_entries,
    read_variables,
)
from nova_mcp.settings import SECRET_PREFIX, secret_variables

log = logging.getLogger(__name__)

FILE_NAME: Final = "secrets.toml"
KEYRING_SERVICE: Final = "nova-mcp"
_MAX_FILE_BYTES: Final = 1024 * 1024
SHORTEST_SECRET: Final = 4

Keyring = Callable[[str], str | None]
Stamp = tuple[int, int, int, int]


def no_keyring(name: str) -> str | None:
    return None


def system_keyring() -> Keyring:
    """The keyring of this machine, if the package that talks to it is installed."""
    if find_spec("keyring") is None:
        return no_keyring

    def read(name: str) -> str | None:
        # Imported late: it starts looking for desktop services at once.
        keyring = import_module("keyring")
        try:
            value = keyring.get_password(KEYRING_SERVICE, name)
        except keyring.errors.KeyringError as error:
            log.warning('the keyring did not give the secret "%s": %s', name, type(error).__name__)
            return None
        return value if isinstance(value, str) else None

    return read


class SecretStore:
    """The secrets of one data folder; the file is read again whenever it has changed."""

    def __init__(
        self, data_dir: Path, variables: Mapping[str, str] | None = None, keyring: Keyring = no_keyring
    ) -> None:
        self._path = data_dir / FILE_NAME
        self._variables = read_variables(variables or {})
        self._keyring = keyring
        self._secrets: dict[str, Secret] = {}
        self._stamp: Stamp | None = None
        self._problem: str | None = None
        self._reading = threading.Lock()
        self.redactor = Redactor()
        self.refresh()

    @property
    def problem(self) -> str | None:
        """Why the file was not taken, if it was not."""
        return self._problem

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({secret.name for secret in (*self._secrets.values(), *self._variables.values())}))

    async def find(self, name: str) -> Secret:
        """The secret of that name as it stands now; `secret.not_found` says where it was looked for."""
        await anyio.to_thread.run_sync(self.refresh)
        secret = self._secrets.get(name) or self._variables.get(folded(name))
        if secret is not None:
            return secret
        # Told to an agent: the folder is the person's business, and names of other secrets are nobody's.
        unread = f" {FILE_NAME} was not read: {self._problem}." if self._problem else ""
        raise NotFound(
            "secret.not_found",
            f'There is no secret "{name[:64]}".{unread}',
            f"Ask the person to add it to {FILE_NAME} in Nova's data folder, or to set {SECRET_PREFIX}{folded(name)}.",
        )

    def shown_at(self, top_url: str, frame_url: str) -> tuple[str, ...]:
        """The values that may be looked for in a frame, because they may be typed there; short ones say too little."""
        known = {secret.name: secret for secret in (*self._variables.values(), *self._secrets.values())}
        return tuple(
            secret.value
            for secret in known.values()
            if len(secret.value) >= SHORTEST_SECRET and isinstance(judge_secret(secret, top_url, frame_url), Usable)
        )

    def refresh(self) -> None:
        """Take the file as it is now; one that can't be taken leaves no secret usable, but all known ones hidden."""
        with self._reading:
            self._take()
            self.redactor.learn((*self._variables.values(), *self._secrets.values()))

    def _take(self) -> None:
        stamp: Stamp | None = None
        problem: str | None = None
        taken: dict[str, Secret] = {}
        try:
            stamp = _stamp(self._path)
            if stamp == self._stamp and not (stamp is None and self._problem):
                return
            if stamp is not None:
                taken = self._complete(_read(self._path))
        except UnreadableSecrets as refusal:
            problem = str(refusal)
            if problem != self._problem:
                log.error("%s was not read: %s", self._path, refusal)
        # Assigned at once: whoever asks meanwhile finds the old secrets or the new ones, never none.
        self._stamp, self._secrets, self._problem = stamp, taken, problem

    def _complete(self, entries: Mapping[str, SecretEntry]) -> dict[str, Secret]:
        found: dict[str, Secret] = {}
        for name, entry in entries.items():
            if entry.value is not None:
                found[name] = Secret(name, entry.value, entry.hosts, "file")
            elif value := self._keyring(name):
                found[name] = Secret(name, value, entry.hosts, "keyring")
            elif (given := self._variables.get(folded(name))) is not None:
                found[name] = Secret(name, given.value, entry.hosts or given.hosts, "environment")
        return found


def open_secrets(data_dir: Path) -> SecretStore:
    """The secrets of this machine and folder."""
    return SecretStore(data_dir, secret_variables(), system_keyring())


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableSecrets(error.strerror or "it can't be opened") from error
    # The mode counts too: `chmod 600` on a refused file changes nothing else but must be noticed.
    return (status.st_mtime_ns, status.st_size, status.st_mode, status.st_ino)


def _read(path: Path) -> dict[str, SecretEntry]:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        raise UnreadableSecrets(error.strerror or "it can't be opened") from error
    with os.fdopen(descriptor, "rb") as file:
        _check_privacy(os.fstat(file.fileno()))
        raw = file.read(_MAX_FILE_BYTES + 1)
    if len(raw) > _MAX_FILE_BYTES:
        raise UnreadableSecrets("it is larger than 1 MB")
    try:
        return read_entries(tomllib.loads(raw.decode("utf-8")))
    except UnicodeDecodeError:
        raise UnreadableSecrets("it is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UnreadableSecrets(f"it is not TOML: {error}") from None


def _check_privacy(status: os.stat_result) -> None:
    if os.name == "nt":
        return
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableSecrets("it is not a regular file")
    if status.st_mode & 0o077:
        raise UnreadableSecrets(f"others can read it (mode {stat.S_IMODE(status.st_mode):04o}); run chmod 600 on it")
    if status.st_uid not in (os.getuid(), 0):
        raise UnreadableSecrets(f"it belongs to another user (uid {status.st_uid})")
