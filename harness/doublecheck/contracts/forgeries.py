"""Control-plane requests without a signature, or with an invalid one, each wrong in another way."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentdouble.core import invoke_tool
from agentdouble.core.signing import DATE_FORMAT, Credentials
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.wire.calls import Request

# The actions of a session's life; a platform without them refuses them anyway.
OTHER_ACTIONS = ("CreateSession", "GetSession", "ListSessions", "DeleteSession", "GetTool")


def forged(
    platform: Platform, body: Mapping[str, Any], other_body: Mapping[str, Any]
) -> dict[str, Request]:
    """Return requests that the platform must refuse, by what is wrong with each.

    They simulate an attacker who has seen a valid request but does not know the secret.
    """
    address = platform.target.address()
    key, secret = address.credentials.access_key, address.credentials.secret_key
    right = wire.signed(platform, body)
    bare, authorization = without_signature(right), right.headers["Authorization"]
    signature = authorization.rpartition("Signature=")[2]
    half, content = len(signature) // 2, json.dumps(other_body).encode()

    def with_header(name: str, value: str, request: Request = right) -> Request:
        return replace(request, headers={**request.headers, name: value})

    def signed_by(access_key: str, secret_key: str) -> Request:
        return wire.signed(platform, body, credentials=Credentials(access_key, secret_key))

    def signed_after(days: int) -> Request:
        when = dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=days)
        return wire.signed(platform, body, when=when)

    def replaced(old: str, new: str) -> Request:
        return with_header("Authorization", authorization.replace(old, new))

    announced = with_header("X-Content-Sha256", hashlib.sha256(content).hexdigest())
    later = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=30)
    pair = base64.b64encode(f"{key}:{secret}".encode()).decode()
    requests = {
        "no signature": bare,
        "an empty header": with_header("Authorization", "", bare),
        "the algorithm alone": with_header("Authorization", authorization.split(" ")[0], bare),
        "another scheme alone": with_header("Authorization", "Bearer", bare),
        "an empty signature": replaced(signature, ""),
        "the access key as a token": with_header("Authorization", f"Bearer {key}", bare),
        "the key pair as HTTP Basic": with_header("Authorization", f"Basic {pair}", bare),
        "an unknown access key": signed_by("AKLTnobody", secret),
        "a truncated access key": signed_by(key[:-1], secret),
        "an access key with a suffix": signed_by(f"{key}0", secret),
        "a wrong secret": signed_by(key, "wrong"),
        "a truncated secret": signed_by(key, secret[:-1]),
        "the access key as the secret": signed_by(key, key),
        "a wrong first half": replaced(signature, "0" * half + signature[half:]),
        "a wrong second half": replaced(signature, signature[:half] + "0" * half),
        "half of the signature": replaced(signature, signature[:half]),
        "another body": replace(right, content=content),
        "another body, with its own hash": replace(announced, content=content),
        "another action": replace(right, url=right.url.replace(invoke_tool.ACTION, "ListSessions")),
        "an extra query parameter": replace(right, url=f"{right.url}&More=1"),
        "another time": with_header("X-Date", later.strftime(DATE_FORMAT)),
        "another content type": with_header("Content-Type", "text/plain"),
        "another region": replaced(f"/{address.region}/", "/elsewhere/"),
        "another service": replaced(f"/{address.service}/", "/another/"),
        "signed a year ago": signed_after(days=-366),
        "signed a month ago": signed_after(days=-31),
        "signed for next month": signed_after(days=31),
    }
    if platform.target.restricted is not None:
        other_secret = platform.target.restricted.secret_key
        requests["the secret of another key"] = signed_by(key, other_secret)
    return requests


def without_signature(request: Request) -> Request:
    """Return a request without its signature."""
    headers = {name: value for name, value in request.headers.items() if name != "Authorization"}
    return replace(request, headers=headers)


NOBODYS = "doublecheck-nobody-has-this-key"
NO_KEY = "no key"


def wrong_key_headers(key: str) -> Mapping[str, Mapping[str, str]]:
    """Return headers with wrong keys, by what is wrong.

    None has the right key alone in another place or scheme: how a gateway receives a key is open
    (U-GATEWAY-AUTH).
    """
    last = "a" if key[-1] != "a" else "b"
    keys = {
        "the key without its last character": key[:-1],
        "the key with a suffix": f"{key}0",
        "another key": NOBODYS,
        "the key with its case swapped": key.swapcase(),
        "the key with another last character": f"{key[:-1]}{last}",
        "the key without its first character": key[1:],
        "half of the key": key[: len(key) // 2],
    }
    values = {name: f"Bearer {wrong}" for name, wrong in keys.items() if wrong != key}
    values |= {"an empty header": "", "another key without a scheme": NOBODYS}
    values |= {
        "a scheme without a key": "Bearer",
        "a comma as the key": "Bearer ,",
        "a word after the key": f"Bearer {key} more",
        "the key in a list": f"Bearer {NOBODYS}, {key}",
        "two schemes in a list": f"Bearer {NOBODYS}, Bearer {key}",
    }
    return {NO_KEY: {}, **{name: {"Authorization": value} for name, value in values.items()}}
