"""The key pairs that may sign control-plane requests, and what each of them may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentdouble.settings import KeyPair, Settings
from agentdouble.signing import Credentials


@dataclass(frozen=True)
class Key:
    """A key pair; without the full-access permission every action is refused (CTL-07)."""

    credentials: Credentials
    full_access: bool = True


class Keys:
    """The key pairs of a double, by access key."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = {key.credentials.access_key: key for key in keys}

    @classmethod
    def of(cls, own: Credentials, settings: Settings) -> Keys:
        """Return the double's own key pair, which may do everything, and those of the settings."""
        return cls((Key(own), *map(_key, settings.keys)))

    def find(self, access_key: str) -> Key | None:
        """Return the key pair of that access key, if there is one."""
        return self._keys.get(access_key)

    def credentials_of(self, access_key: str) -> Credentials | None:
        """Return the credentials of that access key, if there are any."""
        key = self.find(access_key)
        return None if key is None else key.credentials


def _key(pair: KeyPair) -> Key:
    token = pair.session_token
    credentials = Credentials(
        pair.access_key,
        pair.secret_key.get_secret_value(),
        None if token is None else token.get_secret_value(),
    )
    return Key(credentials, pair.full_access)
