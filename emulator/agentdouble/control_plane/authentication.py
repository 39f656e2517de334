"""The checks of callers: the signature (CTL-03) and the full-access permission (CTL-07)."""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request

from agentdouble import ledger, signing
from agentdouble.canonical import read_query
from agentdouble.clock import Clock
from agentdouble.control_plane.action_errors import public_error
from agentdouble.control_plane.envelope import Metadata
from agentdouble.errors import SignatureError
from agentdouble.settings import KeyPair, Settings
from agentdouble.signing import Credentials


class Authenticator:
    """Checks requests against a double's key pairs: its ``own``, and those of the settings.

    The double's own key pair may call every action. A key without the full-access permission may
    call none (CTL-07).
    """

    def __init__(self, own: Credentials, settings: Settings, clock: Clock) -> None:
        self._credentials = {one.access_key: one for one in (own, *map(_of, settings.keys))}
        self._permitted = {own.access_key: True} | {
            pair.access_key: pair.full_access for pair in settings.keys
        }
        self._checks = settings.check_signatures
        self._clock = clock

    def check(self, request: Request, body: bytes, metadata: Metadata) -> None:
        """Check a request, and read region and service from its signature's scope.

        Raises ActionError with the platform's code.
        """
        if not self._checks:
            return
        ledger.choose("U-SIGNING")
        ledger.choose("U-SIGNING-SKEW")
        try:
            authorization = signing.verify(
                _signed_parts(request, body),
                credentials_of=self._credentials.get,
                wall=self._clock.wall(),
            )
        except SignatureError as error:
            raise public_error(error.code, str(error), error.data) from None
        metadata.region = authorization.scope.region
        metadata.service = authorization.scope.service
        self._permit(authorization.access_key, metadata)

    def _permit(self, access_key: str, metadata: Metadata) -> None:
        if not self._permitted[access_key]:
            raise public_error(
                "AccessDenied",
                f"User is not authorized to perform: {metadata.service}:{metadata.action} on "
                f"resource: *. The key {access_key} lacks the full-access permission.",
            )


def _signed_parts(request: Request, body: bytes) -> signing.Request:
    names = Counter(request.headers.keys())
    return signing.Request(
        method=request.method,
        path=request.scope["path"],
        query=read_query(request.scope["query_string"]),
        headers=dict(request.headers),
        body=body,
        repeated=frozenset(names - Counter(set(names))),
    )


def _of(pair: KeyPair) -> Credentials:
    token = pair.session_token
    return Credentials(
        pair.access_key,
        pair.secret_key.get_secret_value(),
        None if token is None else token.get_secret_value(),
    )
