from __future__ import annotations

import json

import pytest

from agentdouble.core import redaction

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
def test_redact_hides_secrets(name: str, value: str, expected: str) -> None:
    """Credentials become ***, and the rest stays readable."""
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
def test_endpoint_tokens_are_hidden_in_texts(text: str, expected: str) -> None:
    """Only the token becomes ***."""
    assert text.replace(expected, "***" if expected else "") == redaction.without_secrets(text)


SECRET_PARAMETERS = [
    *("sig", "signature", "X-Amz-Signature", "X-Amz-Security-Token", "token", "key", "code"),
    *("access_token", "accessToken", "client_secret", "apiKey", "hmac", "pwd", "auth", "id_token"),
]


@pytest.mark.parametrize("name", SECRET_PARAMETERS)
def test_secret_parameters_are_hidden(name: str) -> None:
    """In a query, and in a URL within a text."""
    query = f"a=1&{name}=s3cret&b=2"

    assert f"a=1&{name}=***&b=2" == redaction.hide_in_query(query)
    assert f"see https://h/p?{query}." == redaction.without_secrets(
        f"see https://h/p?{query}."
    ).replace("***", "s3cret")
    assert "s3cret" not in redaction.without_secrets(f'{{"url": "https://h/p?{query}"}}')


@pytest.mark.parametrize(
    "name",
    [
        *(
            "api_key",
            "password",
            "apiKey",
            "APIKey",
            "OPENAI_API_KEY",
            "db.password",
            "clientSecret",
        ),
        *("access_token", "token", "private_key", "credentials", "LarkAppSecret", "smtp_pass"),
        *("SecretAccessKey", "passwd", "Authorization", "user-password", "pwd", "jwt"),
    ],
)
def test_secret_fields_are_hidden(name: str) -> None:
    """In JSON, Python, nested strings, lists and forms, even truncated."""
    fields = {"prompt": "hi", name: 's3c"r\\et', "last": 1}
    hidden = {**fields, name: "***"}
    nested = {"payload": json.dumps({"payload": json.dumps(fields)})}

    assert hidden == json.loads(redaction.without_secrets(json.dumps(fields)))
    inner = json.loads(json.loads(redaction.without_secrets(json.dumps(nested)))["payload"])
    assert hidden == json.loads(inner["payload"])
    assert repr(hidden) == redaction.without_secrets(repr(fields))
    assert {"x": repr(hidden)} == json.loads(
        redaction.without_secrets(json.dumps({"x": repr({**fields, name: "s3cret"})}))
    )
    assert {name: ["***", "***"]} == json.loads(
        redaction.without_secrets(json.dumps({name: ["s3cret", "other"]}))
    )
    assert f"a=1&{name}=***" == redaction.without_secrets(f"a=1&{name}=s3cret")
    assert "s3c" not in redaction.without_secrets(json.dumps(fields)[:-20])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://ann:s3c:ret@h:80/p", "http://ann:***@h:80/p"),
        ("to 'https://:s3cret@h'.", "to 'https://:***@h'."),
        ("http://127.0.0.1:80/@ann", "http://127.0.0.1:80/@ann"),
        ("ssh://git@h/p", "ssh://git@h/p"),
    ],
)
def test_passwords_in_urls_are_hidden(text: str, expected: str) -> None:
    """User names are kept."""
    assert expected == redaction.without_secrets(text)
