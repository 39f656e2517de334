"""Details that help the author of a client whose signature does not match.

The verifier's canonical request and string to sign are shown, and the right signature never is: it
would let the request in. Secrets in the query and the headers are shown as ``***``, but hashed as
they are.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from agentdouble.core.canonical import CanonicalRequest, Request
from agentdouble.core.redaction import REDACTED, is_secret_parameter, redact, without_secrets

_LONGEST = 2000  # characters of a text in an answer


def mismatch(
    request: Request, canonical: CanonicalRequest, string_to_sign: str
) -> Mapping[str, Any]:
    """Return what can be compared, JSON-ready, and a sentence if the body's hash is wrong."""
    query = "&".join(map(_shown_parameter, canonical.query.split("&")))
    # not splitlines(), which would break a value with a NEL
    headers = "".join(map(_shown_header, canonical.headers.split("\n")[:-1]))
    text = replace(canonical, query=query, headers=headers).encode().decode("utf-8", "replace")
    announced, differs = request.headers.get("x-content-sha256"), []
    if announced is not None and not hmac.compare_digest(
        announced.encode(), canonical.payload.encode()
    ):
        differs.append(
            f"X-Content-Sha256 is {_quoted(announced[:64])}, but the SHA-256 of the body, "
            f"{len(request.body)} bytes as they came, is {canonical.payload}."
        )
    return {
        "CanonicalRequest": _bounded(text),
        "StringToSign": _bounded(string_to_sign),
        "Differs": differs,
    }


def message(data: Mapping[str, Any]) -> str:
    """Return the data of a mismatch in sentences for people, on one line."""
    texts = (
        f"The canonical request of this double is {_quoted(data['CanonicalRequest'])}.",
        f"Its string to sign is {_quoted(data['StringToSign'])}.",
    )
    return " ".join((*data["Differs"], *texts))


def _shown_parameter(parameter: str) -> str:
    name = parameter.partition("=")[0]
    return (
        f"{name}={REDACTED}" if is_secret_parameter(unquote(name)) else without_secrets(parameter)
    )


def _shown_header(line: str) -> str:
    name, _, value = line.partition(":")
    hidden = REDACTED if is_secret_parameter(name) else redact(name.lower(), without_secrets(value))
    return f"{name}:{hidden}\n"


def _bounded(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}... ({len(text) - _LONGEST} characters more)"


def _quoted(text: str) -> str:
    """Return a text on one line, with its line ends as ``\\n``, as it stands in most languages."""
    return json.dumps(text, ensure_ascii=False)
