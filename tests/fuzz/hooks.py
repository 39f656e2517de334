"""Schemathesis hooks that add signatures, and the token of a session."""

from __future__ import annotations

import datetime as dt
import os
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import schemathesis
from requests import PreparedRequest
from requests.auth import AuthBase

from agentdouble.core import environment, signing
from agentdouble.core.signing import Credentials

_KEYS = Credentials(os.environ[environment.ACCESS_KEY], os.environ[environment.SECRET_KEY])
_SESSION = dict(parse_qsl(os.environ["FUZZED_SESSION"]))


class _Credentials(AuthBase):
    """Signs actions, and adds a session to data-plane requests."""

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        parts = urlsplit(str(request.url))
        if "Action=" in parts.query:
            return self._signed(request)
        if parts.path.startswith("/v1/") and not parts.path.startswith("/v1/tasks"):
            query = {**dict(parse_qsl(parts.query)), **_SESSION}
            request.url = urlunsplit(parts._replace(query=urlencode(query)))
        return request

    def _signed(self, request: PreparedRequest) -> PreparedRequest:
        body = request.body or b""
        headers = signing.sign(
            str(request.method),
            str(request.url),
            body.encode() if isinstance(body, str) else body,
            credentials=_KEYS,
            region=os.environ[environment.TOOL_REGION],
            service="agentkit",
            when=dt.datetime.now(dt.timezone.utc),
            content_type=str(request.headers.get("Content-Type", "application/json")),
        )
        request.headers.update(headers)
        return request


schemathesis.auth.set_from_requests(_Credentials())
