"""What a signature that does not match is compared with, and in which part it differs.

The writer of a client compares the verifier's canonical request and string to sign with its own.
Where a usual mistake explains the signature, the mistake is named. The verifier knows the secret,
so it can try the mistakes; all of them remain refused. The right signature is never shown, because
it would let the request in. Secrets in the query and the headers are shown as ``***``, but hashed
as they are.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from agentdouble.canonical import CanonicalRequest, Request, unsorted_query
from agentdouble.redaction import REDACTED, is_secret_parameter, redact, without_secrets

_LONGEST = 2000  # characters of a text in an answer
_HEADERS_TRIED = 16
_USUAL_REGION, _USUAL_SERVICE = "cn-beijing", "agentkit"
_EMPTY = hashlib.sha256(b"").hexdigest()

Matches = Callable[[bytes, str, str], bool]


@dataclass(frozen=True)
class Mismatch:
    """A request with a wrong signature, its most usual canonical form, and the string to sign.

    ``matches`` says, in constant time, whether the signature is that of a canonical text for a
    region and a service; ``region`` and ``service`` are those of the request's Credential.
    """

    request: Request
    canonical: CanonicalRequest
    string_to_sign: str
    region: str
    service: str
    matches: Matches

    def data(self) -> Mapping[str, Any]:
        """Return what can be compared, JSON-ready, with a sentence for each known difference."""
        return {
            "CanonicalRequest": _bounded(self._shown().encode().decode("utf-8", "replace")),
            "StringToSign": _bounded(self.string_to_sign),
            "Differs": list(self._differs()),
        }

    def _shown(self) -> CanonicalRequest:
        query = "&".join(map(_shown_parameter, self.canonical.query.split("&")))
        headers = "".join(map(_shown_header, _lines(self.canonical.headers)))
        return replace(self.canonical, query=query, headers=headers)

    def _differs(self) -> Iterator[str]:
        announced = self.request.headers.get("x-content-sha256")
        actual = self.canonical.payload
        if announced is not None and not _same(announced, actual):
            yield (
                f"X-Content-Sha256 is {_quoted(announced[:64])}, but the SHA-256 of the body, "
                f"{len(self.request.body)} bytes as they came, is {actual}."
            )
        for mistake, canonical in self._mistakes():
            if self.matches(canonical.encode(), self.region, self.service):
                yield f"The signature matches if {mistake}."
        for region, service in self._other_scopes():
            if self.matches(self.canonical.encode(), region, service):
                yield (
                    f"The signature matches if its key is made for the region {region} and the "
                    f"service {service}, but Credential has {self.region[:100]} and "
                    f"{self.service[:100]}."
                )

    def _mistakes(self) -> Iterator[tuple[str, CanonicalRequest]]:
        """Yield usual mistakes of clients, and the canonical requests that they make."""
        canonical = self.canonical
        as_sent = unsorted_query(self.request)
        if as_sent != canonical.query:
            yield (
                "the query keeps the order in which it was sent: sort it by name",
                replace(canonical, query=as_sent),
            )
        if "%20" in canonical.query:
            yield (
                "the query has + for a space: write %20",
                replace(canonical, query=canonical.query.replace("%20", "+")),
            )
        yield from self._mistakes_in_headers()
        yield from self._mistakes_in_payload()

    def _mistakes_in_headers(self) -> Iterator[tuple[str, CanonicalRequest]]:
        canonical = self.canonical
        lines = _lines(canonical.headers)
        yield (
            "the end of the last header's line is missing: an empty line follows the headers",
            replace(canonical, headers=canonical.headers[:-1]),
        )
        if sorted(lines) != lines:
            yield (
                "the headers are sorted by name, but SignedHeaders is not",
                replace(canonical, headers="".join(sorted(lines))),
            )
        for line in lines[:_HEADERS_TRIED]:
            left = "".join(other for other in lines if other is not line)
            name = line.partition(":")[0][:100]
            yield (
                f"the header {name} is left out, but SignedHeaders names it",
                replace(canonical, headers=left),
            )

    def _mistakes_in_payload(self) -> Iterator[tuple[str, CanonicalRequest]]:
        announced = self.request.headers.get("x-content-sha256", "")
        wrong = {
            announced: "the hash is that in X-Content-Sha256, which is not that of this body",
            "UNSIGNED-PAYLOAD": "UNSIGNED-PAYLOAD stands for the hash of the body",
            _EMPTY: "the hash is that of an empty body",
            "": "the hash of the body is left out",
        }
        for payload, mistake in wrong.items():
            if payload != self.canonical.payload:
                yield mistake, replace(self.canonical, payload=payload)

    def _other_scopes(self) -> Iterator[tuple[str, str]]:
        scopes = (
            (self.service, self.region),
            (_USUAL_REGION, self.service),
            (self.region, _USUAL_SERVICE),
            (_USUAL_REGION, _USUAL_SERVICE),
        )
        own = (self.region, self.service)
        yield from (scope for scope in dict.fromkeys(scopes) if scope != own)


def message(data: Mapping[str, Any]) -> str:
    """Return the data of a mismatch in sentences for people, on one line."""
    texts = (
        f"The canonical request of this double is {_quoted(data['CanonicalRequest'])}.",
        f"Its string to sign is {_quoted(data['StringToSign'])}.",
    )
    return " ".join((*data["Differs"], *texts))


def _lines(headers: str) -> Sequence[str]:
    """Return the lines with their ends; unlike splitlines(), keep a value with a NEL whole."""
    return [f"{line}\n" for line in headers.split("\n")[:-1]]


def _shown_parameter(parameter: str) -> str:
    name = parameter.partition("=")[0]
    return (
        f"{name}={REDACTED}" if is_secret_parameter(unquote(name)) else without_secrets(parameter)
    )


def _shown_header(line: str) -> str:
    name, _, value = line.rstrip("\n").partition(":")
    hidden = REDACTED if is_secret_parameter(name) else redact(name.lower(), without_secrets(value))
    return f"{name}:{hidden}\n"


def _same(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode(), right.encode())


def _bounded(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}... ({len(text) - _LONGEST} characters more)"


def _quoted(text: str) -> str:
    """Return a text on one line, with its line ends as ``\\n``, as it stands in most languages."""
    return json.dumps(text, ensure_ascii=False)
