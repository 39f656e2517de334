"""Requests to the control plane that are signed wrongly, or not at all, each in another way."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agentdouble import invoke_tool
from agentdouble.signing import DATE_FORMAT, Credentials
from doublecheck.contracts import wire
from doublecheck.wire.calls import Request

if TYPE_CHECKING:
    from doublecheck.client._sync.platform import Platform

# The actions of a session's life; a platform that has none of them refuses them anyway.
OTHER_ACTIONS = ("CreateSession", "GetSession", "ListSessions", "DeleteSession", "GetTool")
LONG_AGO = dt.timedelta(days=366)


@dataclass(frozen=True)
class Forger:
    """Somebody who knows a request that the platform takes, and not the secret behind it."""

    platform: Platform
    body: Mapping[str, Any]
    other_body: Mapping[str, Any]

    def all(self) -> dict[str, Request]:
        """Return every forged request by what is wrong with it."""
        return {
            **self.unsigned(),
            **self.by_other_credentials(),
            **self.with_other_signatures(),
            **self.changed_afterwards(),
            "signed a year ago": self._signed(when=dt.datetime.now(dt.timezone.utc) - LONG_AGO),
        }

    def unsigned(self) -> dict[str, Request]:
        """Return requests that are not signed, or name the key by another scheme."""
        own = self._own
        pair = base64.b64encode(f"{own.access_key}:{own.secret_key}".encode()).decode()
        authorizations = {
            "no signature": None,
            "an empty signature": "",
            "the access key as a token": f"Bearer {own.access_key}",
            "the bare access key": own.access_key,
            "the key pair of HTTP Basic": f"Basic {pair}",
        }
        return {what: self._authorized(value) for what, value in authorizations.items()}

    def by_other_credentials(self) -> dict[str, Request]:
        """Return requests that are signed well, by a key or a secret that is not the platform's."""
        key, secret = self._own.access_key, self._own.secret_key
        keys = {
            "an unknown access key": "AKLTnobody",
            "an access key that is cut": key[:-1],
            "an access key with more behind it": f"{key}0",
            "an access key in the other case": key.swapcase(),
        }
        secrets = {
            "a wrong secret": "wrong",
            "an empty secret": "",
            "a secret that is cut": secret[:-1],
            "a secret with more behind it": f"{secret}0",
            "the access key as the secret": key,
        }
        restricted = self.platform.target.restricted
        if restricted is not None:
            secrets["the secret of another key"] = restricted.secret_key
        pairs = {what: Credentials(one, secret) for what, one in keys.items() if one != key}
        pairs |= {what: Credentials(key, one) for what, one in secrets.items()}
        return {what: self._signed(credentials=one) for what, one in pairs.items()}

    def with_other_signatures(self) -> dict[str, Request]:
        """Return requests whose signature is changed in a part."""
        signature = self._right.headers["Authorization"].rpartition("Signature=")[2]
        half = len(signature) // 2
        zeros = "0" * half
        changed = {
            "another first half of the signature": zeros + signature[half:],
            "another second half of the signature": signature[:half] + zeros,
            "half of the signature": signature[:half],
            "another signature": zeros * 2,
        }
        return {what: self._replaced(signature, one) for what, one in changed.items()}

    def changed_afterwards(self) -> dict[str, Request]:
        """Return requests in which a part that is signed was changed afterwards."""
        right, address = self._right, self.platform.target.address()
        content = json.dumps(self.other_body).encode()
        later = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=30)
        announced = hashlib.sha256(content).hexdigest()
        return {
            "another body": replace(right, content=content),
            "another body, announced": replace(
                self._with_header("X-Content-Sha256", announced), content=content
            ),
            "another action": replace(
                right, url=right.url.replace(invoke_tool.ACTION, "ListSessions")
            ),
            "more in the query": replace(right, url=f"{right.url}&More=1"),
            "another time": self._with_header("X-Date", later.strftime(DATE_FORMAT)),
            "another content type": self._with_header("Content-Type", "text/plain"),
            "another region": self._replaced(f"/{address.region}/", "/elsewhere/"),
            "another service": self._replaced(f"/{address.service}/", "/another/"),
        }

    @property
    def _own(self) -> Credentials:
        return self.platform.target.address().credentials

    @cached_property
    def _right(self) -> Request:
        return self._signed()

    def _signed(self, **how: Any) -> Request:
        return wire.signed(self.platform, self.body, **how)

    def _authorized(self, value: str | None) -> Request:
        bare = without_signature(self._right)
        if value is None:
            return bare
        return replace(bare, headers={**bare.headers, "Authorization": value})

    def _replaced(self, old: str, new: str) -> Request:
        authorization = self._right.headers["Authorization"]
        return self._with_header("Authorization", authorization.replace(old, new))

    def _with_header(self, name: str, value: str) -> Request:
        return replace(self._right, headers={**self._right.headers, name: value})


def without_signature(request: Request) -> Request:
    """Return a request without its signature."""
    kept = {name: one for name, one in request.headers.items() if name != "Authorization"}
    return replace(request, headers=kept)


NOBODYS = "doublecheck-nobody-has-this-key"
NO_KEY = "no key"


def wrong_key_headers(key: str) -> Mapping[str, Mapping[str, str]]:
    """Return the headers with what is not the key, by what is wrong.

    They have no right key in another place or by another scheme: how a gateway is told a key is
    open (U-GATEWAY-AUTH).
    """
    values = dict(_values(key))
    return {NO_KEY: {}, **{what: {"Authorization": value} for what, value in values.items()}}


def _values(key: str) -> Iterator[tuple[str, str]]:
    for what, wrong in _wrong(key):
        if wrong != key:
            yield what, f"Bearer {wrong}"
    yield "an empty header", ""
    yield "the scheme alone", "Bearer"
    yield "another key without a scheme", NOBODYS
    yield "another key with another scheme", f"Basic {NOBODYS}"


def _wrong(key: str) -> Iterator[tuple[str, str]]:
    last = "a" if key[-1] != "a" else "b"
    half = len(key) // 2
    yield "the key without its end", key[:-1]
    yield "the key with more behind it", f"{key}0"
    yield "another key", NOBODYS
    yield "the key in the other case", key.swapcase()
    yield "the key with another end", f"{key[:-1]}{last}"
    yield "the key with another begin", f"{last}{key[1:]}" if key[0] != last else f"0{key[1:]}"
    yield "the key without its begin", key[1:]
    yield "the key with more before it", f"0{key}"
    yield "half of the key", key[:half]
    yield "the key with another middle", f"{key[:half]}{last * 2}{key[half + 2 :]}"
    yield "the key twice", f"{key}{key}"
