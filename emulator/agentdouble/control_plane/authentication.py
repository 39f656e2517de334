"""Who asks, and may they: the signature (CTL-03) and the full-access permission (CTL-07)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.requests import Request

from agentdouble import ledger, signing
from agentdouble.canonical import read_query
from agentdouble.clock import Clock
from agentdouble.control_plane.action_errors import public_error
from agentdouble.control_plane.envelope import Metadata
from agentdouble.errors import SignatureError
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


class Authenticator:
    """Checks requests against the key pairs of a double."""

    def __init__(self, keys: Keys, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock

    def check(self, request: Request, body: bytes, metadata: Metadata) -> None:
        """Let a request pass, and take region and service from its signature's scope.

        Raises ActionError with the platform's code.
        """
        if ledger.choose("U-SIGNING") == "none":
            return
        ledger.choose("U-SIGNING-SKEW")
        try:
            authorization = signing.verify(
                _signed_parts(request, body),
                credentials_of=self._keys.credentials_of,
                wall=self._clock.wall(),
            )
        except SignatureError as error:
            raise public_error(error.code, str(error)) from None
        metadata.region = authorization.scope.region
        metadata.service = authorization.scope.service
        self._permit(authorization.access_key, metadata)

    def _permit(self, access_key: str, metadata: Metadata) -> None:
        key = self._keys.find(access_key)
        if key is None or not key.full_access:
            raise public_error(
                "AccessDenied",
                f"User is not authorized to perform: {metadata.service}:{metadata.action} on "
                f"resource: *. The key {access_key} lacks the full-access permission.",
            )


def _signed_parts(request: Request, body: bytes) -> signing.Request:
    count = Counter(name.decode("latin-1") for name, _ in request.headers.raw)
    return signing.Request(
        method=request.method,
        path=request.scope["path"],
        query=read_query(request.scope["query_string"]),
        headers=dict(request.headers),
        body=body,
        repeated=frozenset(name for name, times in count.items() if times > 1),
    )


def _key(pair: KeyPair) -> Key:
    token = pair.session_token
    credentials = Credentials(
        pair.access_key,
        pair.secret_key.get_secret_value(),
        None if token is None else token.get_secret_value(),
    )
    return Key(credentials, pair.full_access)
