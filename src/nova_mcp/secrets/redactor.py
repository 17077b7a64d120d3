"""What must not leave: every secret value known so far, replaced by its name in whatever goes out."""

from collections.abc import Iterable

from nova_mcp.core.redaction import SecretFilter
from nova_mcp.core.values import Json
from nova_mcp.secrets.model import Secret


class Redactor:
    """Grows with the secrets that become known; a value that was replaced by another stays secret."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._known: set[tuple[str, str]] = set()
        self.filter = SecretFilter({})
        self.learn(secrets)

    def learn(self, secrets: Iterable[Secret]) -> None:
        known = self._known | {(secret.name, secret.value) for secret in secrets}
        if known != self._known:
            self._known = known
            self.filter = SecretFilter(known)

    def text(self, text: str) -> str:
        return self.filter(text)

    def json(self, value: Json) -> Json:
        """The same value with every text in it made safe, keys included."""
        if not self.filter.active:
            return value
        match value:
            case str():
                return self.filter(value)
            case dict():
                return {self.filter(key): self.json(item) for key, item in value.items()}
            case list():
                return [self.json(item) for item in value]
            case None | bool():
                return value
            case _:
                # Only a number that is the secret itself: counts and times would too often hold a short one by chance.
                spelled = str(value)
                return self.filter(spelled) if self.filter.is_secret(spelled) else value
