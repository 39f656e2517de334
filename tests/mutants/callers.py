"""Doubles that let in callers whom they must refuse, or refuse those whom they must let in."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import eq
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from agentdouble import canonical, signing
from agentdouble.control_plane import authentication
from agentdouble.control_plane.action_errors import invalid
from agentdouble.control_plane.authentication import Authenticator
from agentdouble.control_plane.envelope import Metadata
from agentdouble.control_plane.routes import ControlPlane
from agentdouble.errors import ActionError, SignatureError
from agentdouble.signing import Authorization

REFUSALS = (401, 403)


@dataclass(frozen=True)
class Attempt:
    """A request that a double has refused, or is about to check."""

    authenticator: Authenticator
    request: Request
    body: bytes
    metadata: Metadata
    error: str = ""

    @property
    def header(self) -> str:
        """The header Authorization, or nothing."""
        return self.request.headers.get("authorization", "")

    @property
    def json(self) -> Any:
        """The body of the request."""
        return json.loads(self.body)

    @property
    def access_key(self) -> str:
        """The access key that the caller claims."""
        return Authorization.parse(self.header).access_key

    @property
    def known(self) -> bool:
        """Whether the access key is known."""
        return self.access_key in self.authenticator._credentials

    @property
    def restricted(self) -> bool:
        """Whether the only thing that is missing is the permission."""
        return self.error == "AccessDenied"

    def matches(
        self,
        *,
        secret: str | None = None,
        same: Callable[[str, str], bool] = eq,
        region: str | None = None,
        covered: Callable[[bytes], bytes] = lambda text: text,
        **changed: Any,
    ) -> bool:
        """Return whether the signature is right in a way that differs from the right one."""
        claimed = Authorization.parse(self.header)
        parts = replace(authentication._signed_parts(self.request, self.body), **changed)
        if secret is None:
            secret = self.authenticator._credentials[claimed.access_key].secret_key
        scope = claimed.scope if region is None else replace(claimed.scope, region=region)
        date = parts.headers["x-date"]
        return any(
            same(signing._signature(covered(one.encode()), date, scope, secret), claimed.signature)
            for one in canonical.readings(parts, claimed.signed_headers)
        )

    def as_announced(self, text: bytes) -> bytes:
        """Return a canonical text with the announced hash of the body in place of the true one."""
        announced = self.request.headers["x-content-sha256"]
        return text.replace(hashlib.sha256(self.body).hexdigest().encode(), announced.encode())


Decides = Callable[[Attempt], bool]


def accepting(accepts: Decides) -> Callable[[pytest.MonkeyPatch], None]:
    """Let in some of those who are refused."""

    def change(patch: pytest.MonkeyPatch) -> None:
        original = Authenticator.check

        def check(self: Authenticator, request: Request, body: bytes, metadata: Metadata) -> None:
            try:
                original(self, request, body, metadata)
            except ActionError as error:
                attempt = Attempt(self, request, body, metadata, error.code)
                with contextlib.suppress(SignatureError, KeyError):
                    if accepts(attempt):
                        return
                raise

        patch.setattr(Authenticator, "check", check)

    return change


def refusing(refuses: Decides) -> Callable[[pytest.MonkeyPatch], None]:
    """Refuse some of those who are let in."""

    def change(patch: pytest.MonkeyPatch) -> None:
        original = Authenticator.check

        def check(self: Authenticator, request: Request, body: bytes, metadata: Metadata) -> None:
            original(self, request, body, metadata)
            if refuses(Attempt(self, request, body, metadata)):
                raise invalid("The request", "it is none that this platform takes")

        patch.setattr(Authenticator, "check", check)

    return change


def running_what_is_refused(
    patch: pytest.MonkeyPatch, statuses: tuple[int, ...] = REFUSALS
) -> None:
    """Refuse a request, and then run it nevertheless."""
    original = ControlPlane.dispatch

    async def dispatch(self: ControlPlane, request: Request) -> Response:
        response = await original(self, request)
        if response.status_code in statuses:
            with contextlib.suppress(Exception):
                await self._actions["InvokeTool"](await request.json())
        return response

    patch.setattr(ControlPlane, "dispatch", dispatch)


def has_any_secret(attempt: Attempt) -> bool:
    """Return whether the signature was made with the secret of any key."""
    secrets = [one.secret_key for one in attempt.authenticator._credentials.values()]
    return attempt.known and any(attempt.matches(secret=secret) for secret in secrets)


def has_key_that(same: Callable[[str, str], bool]) -> Decides:
    """Return a check whether the claimed key is about a known one, and its secret was used."""
    return lambda attempt: any(
        same(known, attempt.access_key) and attempt.matches(secret=one.secret_key)
        for known, one in attempt.authenticator._credentials.items()
    )


def seen_before(key: Callable[[Attempt], Any]) -> Decides:
    """Return a check whether a request with this key was refused before."""
    refused: set[Any] = set()

    def seen(attempt: Attempt) -> bool:
        again = key(attempt) in refused
        refused.add(key(attempt))
        return again

    return seen
