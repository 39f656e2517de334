"""Messages of refused requests."""

from __future__ import annotations

import httpx
import pytest

from doublecheck.errors import RefusedError
from doublecheck.wire.calls import refuse

GATEWAY = "<html>\r\n<head><title>502 Bad\r\nGateway</title></head><body>...</body></html>"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (GATEWAY, "a page, '502 Bad Gateway'"),
        ('{"detail": "Nobody <html><title>here</title>."}', "Nobody <html><title>here</title>"),
        ('{"jsonrpc": "2.0", "error": {"code": -32600, "message": "No key."}}', "No key"),
        (
            '{"error": {"message": 3}, "detail": ["a"]}',
            '{"error": {"message": 3}, "detail": ["a"]}',
        ),
        ("it broke", "it broke"),
        ("", "an empty body"),
    ],
)
def test_a_refusal_quotes_the_answer(body: str, message: str) -> None:
    """A gateway's page is quoted by its title; the error has all of it."""
    request = httpx.Request("GET", "http://127.0.0.1/ping")

    with pytest.raises(RefusedError) as caught:
        refuse(httpx.Response(502, text=body, request=request))

    assert f"GET http://127.0.0.1/ping returned HTTP 502: {message}" == str(caught.value)
    assert body == caught.value.body
