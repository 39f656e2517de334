from __future__ import annotations

import time

import pytest

from agentdouble import redaction

SIGNATURE = "0123456789abcdef" * 4
SIGNED = "HMAC-SHA256 Credential=AK/d/r/s/request, SignedHeaders=host"


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("authorization", "Bearer s3cret", "Bearer ***"),
        ("authorization", "Bearer Signature=s3cret", "Bearer ***"),
        ("authorization", "s3cret", "***"),
        ("authorization", f"{SIGNED}, Signature={SIGNATURE}", f"{SIGNED}, Signature=***"),
        ("authorization", f"{SIGNED}, Signature=s3-cret x", f"{SIGNED}, Signature=***"),
        ("proxy-authorization", "Basic s3cret", "Basic ***"),
        ("cookie", "s3cret", "***"),
        ("set-cookie", "s3cret", "***"),
        ("x-api-key", "s3cret", "***"),
        ("x-security-token", "s3cret", "***"),
        ("content-type", "text/plain", "text/plain"),
    ],
)
def test_redact_takes_the_secret_out(name: str, value: str, expected: str) -> None:
    """What proves who somebody is stands as ***; the rest stays readable."""
    assert expected == redaction.redact(name, value)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/v1/file/list?faasInstanceName=s-1&Authorization=s3cret", "s3cret"),
        ('{"Endpoint": "http://h/?faasInstanceName=s-1&Authorization=s3cret"}', "s3cret"),
        ('{"Endpoint": "http://h/?Authorization=s3-cret_\\u0026faasInstanceName=s-1"}', "s3-cret_"),
        ('{"url": "http://h/?a=1\\u0026Authorization=s3cret", "next": 1}', "s3cret"),
        ("url=http%3A%2F%2Fh%2F%3Fa%3D1%26Authorization%3Ds3cret&b=1", "s3cret"),
        ("an Authorization header", ""),
    ],
)
def test_tokens_of_endpoints_are_taken_out_of_texts(text: str, expected: str) -> None:
    """What opens a session's data plane stands as ***, and nothing else is changed."""
    assert text.replace(expected, "***" if expected else "") == redaction.without_tokens(text)


def test_hiding_secrets_takes_time_by_the_length_of_a_body() -> None:
    """Not by its square, whatever stands in it."""

    def seconds(size: int) -> float:
        begun = time.perf_counter()
        redaction.without_tokens('"Value": "' + " " * size + '"')
        return time.perf_counter() - begun

    seconds(1000)
    small, large = min(seconds(4_000) for _ in range(5)), min(seconds(64_000) for _ in range(3))
    assert large < 100 * small
