"""Options whose values are secrets: ``env:NAME`` and ``file:PATH``."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agentdouble.errors import AgentDoubleError

_HEADER = "X-API-Key"


def secret(option: str, source: str) -> str:
    """Return the content of ``env:NAME`` or ``file:PATH``; raise AgentDoubleError.

    No error shows the source if it may be the secret itself.
    """
    kind, _, where = source.partition(":")
    if kind == "env" and where:
        value = os.environ.get(where)
        if not value:
            raise AgentDoubleError(f"{option}: the environment has no {where}.")
        return value
    if kind == "file" and where:
        return read(option, where)
    raise AgentDoubleError(
        f"{option} must be env:NAME or file:PATH, not the key itself: every user of the machine "
        "can read command lines."
    )


def state(url: str | None) -> str | None:
    """Return the URL of a state; raise AgentDoubleError if it contains a password."""
    if url is None or url.startswith(("env:", "file:")):
        return None if url is None else secret("--state", url)
    parts = urlsplit(url)
    if parts.password is not None or "password" in parse_qs(parts.query):
        raise AgentDoubleError(
            "--state contains a password, and every user of the machine can read command lines: "
            "give the URL as env:NAME or file:PATH, in AGENTDOUBLE_STATE or in the settings file."
        )
    return url


def read(option: str, path: str) -> str:
    """Return the text of the file that an option names; raise AgentDoubleError without one."""
    try:
        text = Path(path).read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise AgentDoubleError(f"{option}: {path} cannot be read: {reason}.") from None
    if not text:
        raise AgentDoubleError(f"{option}: {path} is empty.")
    return text


def outbound(
    bearer: str | None, api_key: str | None, basic: str | None, *, definition: bool
) -> Mapping[str, Any] | None:
    """Return the authorizer for a backend; a ``definition`` says where the key is sent."""
    if len([option for option in (bearer, api_key, basic) if option is not None]) > 1:
        raise AgentDoubleError("Use one of --bearer, --api-key and --basic.")
    if basic is not None:
        pair = secret("--basic", basic)
        if ":" not in pair:
            raise AgentDoubleError(f"--basic: {basic} must have the form user:password.")
        encoded = base64.b64encode(pair.encode()).decode()
        return _by_key(f"Basic {encoded}", Parameter="Authorization")
    if bearer is not None:
        token = secret("--bearer", bearer)
        return _by_key(f"Bearer {token}", Parameter="Authorization")
    if api_key is None:
        return None
    header, separator, source = api_key.partition("=")
    if separator and ":" not in header:
        return _by_key(secret("--api-key", source), Parameter=header)
    parameter = {} if definition else {"Parameter": _HEADER}
    return _by_key(secret("--api-key", api_key), **parameter)


def _by_key(key: str, **parameter: str) -> dict[str, Any]:
    where = {"ApiKeyLocation": "Header", **parameter} if parameter else {}
    key_auth = {"ApiKeys": [{"Name": "backend", "Key": key}], **where}
    return {"AuthorizerType": "ApiKey", "Authorizer": {"KeyAuth": key_auth}}
