from __future__ import annotations

import datetime as dt
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

import pytest

from agentdouble.core import signing
from agentdouble.core.signing import Authorization, Credentials, Scope, SignableRequest
from agentdouble.errors import SignatureError
from tests.agentdouble import client_signer
from tests.agentdouble.client_signer import FOUR

pytestmark = pytest.mark.smoke

WHEN = dt.datetime(2026, 11, 21, 3, 9, 35, tzinfo=dt.timezone.utc)
ACCESS, SECRET = "AKLTtest", "c2VjcmV0"
BODY = b'{"ToolId": "t-sandbox"}'
QUERY = (("Action", "InvokeTool"), ("Version", "2025-10-30"))
CONTEXT = "agentkit-sdk-python/0.9.1 (schema=v1; entry=sdk; os=linux)"

BASE = {
    "host": "127.0.0.1:8000",
    "x-content-sha256": hashlib.sha256(BODY).hexdigest(),
    "x-date": "20261121T030935Z",
    "content-type": "application/json",
}


def request(
    signed: str,
    sent: Mapping[str, str],
    canonical: Mapping[str, str] | None = None,
    *,
    query: tuple[tuple[str, str], ...] = QUERY,
    canonical_query: str = "Action=InvokeTool&Version=2025-10-30",
) -> SignableRequest:
    """Return a request with ``sent`` headers, signed over the ``canonical`` ones."""
    text = client_signer.canonical(signed, canonical or sent, BODY, query=canonical_query)
    to_sign = client_signer.string_to_sign(text, sent["x-date"])
    signature = client_signer.signature(to_sign, SECRET)
    authorization = client_signer.authorization(ACCESS, signed, signature)
    return SignableRequest("POST", "/", query, {**sent, "authorization": authorization}, BODY)


def verify(request: SignableRequest, *, wall: dt.datetime = WHEN) -> Authorization:
    return signing.verify(
        request, credentials_of={ACCESS: Credentials(ACCESS, SECRET)}.get, wall=wall
    )


def refusal(request: SignableRequest, *, wall: dt.datetime = WHEN) -> str:
    with pytest.raises(SignatureError) as caught:
        verify(request, wall=wall)
    return caught.value.code


VEADK = request(FOUR, {**BASE, "x-security-token": "token"})
SDK_SIGNED = "content-type;host;x-content-sha256;x-custom-request-context;x-date;x-security-token"
SDK = request(
    SDK_SIGNED, {**BASE, "x-custom-request-context": CONTEXT, "x-security-token": "token"}
)


def test_a_fixed_request_has_a_fixed_signature() -> None:
    """This keeps the scheme from drifting."""
    headers = signing.sign(
        "POST",
        "http://127.0.0.1:8000/?Action=InvokeTool&Version=2025-10-30",
        BODY,
        credentials=Credentials(ACCESS, SECRET),
        region="cn-beijing",
        service="agentkit",
        when=WHEN,
    )

    assert {
        "Content-Type": "application/json",
        "Host": "127.0.0.1:8000",
        "X-Content-Sha256": "f3a1f497746d4783c7a8cb7f3ad95da65c243b147329060a8945f6737931ffd4",
        "X-Date": "20261121T030935Z",
        "Authorization": "HMAC-SHA256 "
        "Credential=AKLTtest/20261121/cn-beijing/agentkit/request, "
        "SignedHeaders=content-type;host;x-content-sha256;x-date, "
        "Signature=04e3d494daa2de616cd5b90445b1b4efc337b4c5f5f36aba3b0cbabf4c8fd244",
    } == headers


def test_a_session_token_is_sent_and_signed() -> None:
    """The verifier accepts it."""
    headers = signing.sign(
        "GET",
        "http://127.0.0.1:8000/a%20b?k=v%2Fw&k=&k=a b",
        b"",
        credentials=Credentials(ACCESS, SECRET, "token"),
        region="r",
        service="s",
        when=WHEN,
    )
    request = SignableRequest(
        "GET",
        "/a b",
        (("k", "v/w"), ("k", ""), ("k", "a b")),
        {name.lower(): value for name, value in headers.items()},
    )

    authorization = verify(request)

    assert f"{FOUR};x-security-token".split(";") == list(authorization.signed_headers)
    assert Scope("20261121", "r", "s") == authorization.scope


@pytest.mark.parametrize(
    "signed",
    [
        pytest.param(VEADK, id="veadk: the token is sent and not signed"),
        pytest.param(SDK, id="SDK: every X- header is signed"),
        pytest.param(
            request(
                f"{FOUR};x-security-token",
                {**BASE, "x-security-token": "token", "x-custom-request-context": CONTEXT},
            ),
            id="ve_sign: the token is signed, the context is not",
        ),
        pytest.param(
            request(FOUR, {**BASE, "host": "double:80"}, {**BASE, "host": "double"}),
            id="SDK: port 80 is sent and not signed",
        ),
        pytest.param(
            request(FOUR, {**BASE, "host": "double:443"}, {**BASE, "host": "double"}),
            id="SDK: port 443 is sent and not signed",
        ),
        pytest.param(
            request(FOUR, {**BASE, "host": "double:80"}), id="veadk: port 80 is sent and signed"
        ),
        pytest.param(
            request(
                SDK_SIGNED,
                {**BASE, "x-custom-request-context": " a  b\t c ", "x-security-token": "t"},
                {**BASE, "x-custom-request-context": "a b c", "x-security-token": "t"},
            ),
            id="whitespace in a value is trimmed and collapsed",
        ),
        pytest.param(
            request(
                FOUR,
                BASE,
                query=(("b", "2"), ("a", "2"), ("a", "1"), ("a", ""), ("ü/", " ~")),
                canonical_query=f"a=&a=1&a=2&b=2&{quote('ü/', safe='')}=%20~",
            ),
            id="keys of the query are repeated, and sorted with their values",
        ),
        pytest.param(
            request("x-date;host", {"host": BASE["host"], "x-date": BASE["x-date"]}),
            id="only host and x-date, in the client's own order",
        ),
    ],
)
def test_every_client_variant_verifies(signed: SignableRequest) -> None:
    """The verifier follows the client's SignedHeaders."""
    assert ACCESS == verify(signed).access_key


def with_headers(request: SignableRequest, **headers: str) -> SignableRequest:
    renamed = {name.replace("_", "-"): value for name, value in headers.items()}
    return replace(request, headers={**request.headers, **renamed})


@pytest.mark.parametrize("sign", [1, -1])
def test_clocks_may_differ_by_fifteen_minutes(sign: int) -> None:
    """One second more is refused, in both directions."""
    skew = dt.timedelta(minutes=15)

    assert ACCESS == verify(VEADK, wall=WHEN + sign * skew).access_key
    assert "InvalidTimestamp" == refusal(VEADK, wall=WHEN + sign * (skew + dt.timedelta(seconds=1)))


def test_the_credential_date_must_match_the_request() -> None:
    """The signing key of another day is refused."""
    scope = "20261120/cn-beijing/agentkit/request"
    text = client_signer.canonical(FOUR, BASE, BODY)
    to_sign = client_signer.string_to_sign(text, BASE["x-date"], scope)
    signature = client_signer.signature(to_sign, SECRET, scope)
    authorization = client_signer.authorization(ACCESS, FOUR, signature, scope)

    assert "InvalidTimestamp" == refusal(with_headers(VEADK, authorization=authorization))


@pytest.mark.parametrize("name", ["host", "x-date"])
def test_host_and_date_must_be_signed(name: str) -> None:
    """Otherwise a signature could be reused on any host or at any time."""
    signed = FOUR.replace(f"{name};", "").replace(f";{name}", "")

    assert "SignatureDoesNotMatch" == refusal(request(signed, BASE))


GOOD = VEADK.headers["authorization"]


@pytest.mark.parametrize(
    "header",
    [
        "Bearer token",
        "HMAC-SHA256",
        GOOD.removeprefix("HMAC-SHA256 "),
        GOOD.replace("HMAC-SHA256", "HMAC-SHA1"),
        GOOD.replace("HMAC-SHA256", "AWS4-HMAC-SHA256"),
        GOOD.replace("Credential=AKLTtest", "Credential="),
        GOOD.replace("AKLTtest/", ""),
        GOOD.replace("20261121/", "2026112/"),
        GOOD.replace("20261121/", "2026-11-21/"),
        GOOD.replace("/request", ""),
        GOOD.replace("/request", "/aws4_request"),
        GOOD.replace("/agentkit", ""),
        GOOD.replace(f"SignedHeaders={FOUR}, ", ""),
        GOOD.replace(FOUR, ""),
        GOOD.replace(", Signature=", ", Signature=g"),
        GOOD.partition("Signature=")[0],
        GOOD.partition("Signature=")[0] + "Signature=",
        GOOD.replace(", ", " "),
        GOOD + ", more",
        GOOD + "é",
        "\x00",
        "HMAC-SHA256 " + "A" * 100_000,
    ],
    ids=lambda header: header[:40],
)
def test_a_malformed_authorization_names_the_expected_form(header: str) -> None:
    with pytest.raises(SignatureError, match="must read 'HMAC-SHA256 Credential=") as caught:
        verify(with_headers(VEADK, authorization=header))

    assert "MissingSignature" == caught.value.code


@pytest.mark.parametrize(
    ("before", "after", "flaw"),
    [
        ("HMAC-SHA256 ", "AWS4-HMAC-SHA256 ", "It does not begin with HMAC-SHA256."),
        (", Signature=", " Signature=", "It has no Signature, or not after a comma."),
        (f"SignedHeaders={FOUR}", "SignedHeaders=", "It has no SignedHeaders, or not"),
        ("AKLTtest/", "/", "Its Credential is not the key and four more parts, the last of"),
        ("/request", "/aws4_request", "Its Credential is not the key and four more parts"),
        ("20261121/", "2026-11-/", "The date in its Credential is not of the form YYYYMMDD."),
        ("Signature=", "Signature=AB", "Its Signature is not lower-case hex."),
        ("Signature=", "Signature=+/", "Its Signature is not lower-case hex."),
    ],
)
def test_the_wrong_part_of_an_authorization_is_named(before: str, after: str, flaw: str) -> None:
    """The code says that the signature is missing, which it is not."""
    with pytest.raises(SignatureError) as caught:
        verify(with_headers(VEADK, authorization=GOOD.replace(before, after)))

    assert f"Signature=<hex>'. {flaw}" in str(caught.value)


def test_secrets_are_not_shown() -> None:
    """The repr of credentials has neither secret nor token."""
    assert "Credentials(access_key='AKLTtest')" == repr(Credentials(ACCESS, SECRET, "token"))


TEMPORARY = Credentials(ACCESS, SECRET, "token")


@pytest.mark.parametrize(
    ("signed", "credentials", "expected"),
    [
        (VEADK, TEMPORARY, ACCESS),
        (SDK, TEMPORARY, ACCESS),
        (request(FOUR, BASE), TEMPORARY, "InvalidSecurityToken"),
        (with_headers(VEADK, x_security_token=""), TEMPORARY, "InvalidSecurityToken"),
        (with_headers(VEADK, x_security_token="tokeN"), TEMPORARY, "InvalidSecurityToken"),
        (with_headers(VEADK, x_security_token="tokens"), TEMPORARY, "InvalidSecurityToken"),
        (with_headers(VEADK, x_security_token="t\xf6ken"), TEMPORARY, "InvalidSecurityToken"),
        (VEADK, replace(TEMPORARY, secret_key="x"), "SignatureDoesNotMatch"),
    ],
)
def test_temporary_credentials_need_their_token(
    signed: SignableRequest, credentials: Credentials, expected: str
) -> None:
    """It must match even if unsigned; a wrong signature is reported first."""
    try:
        user = signing.verify(
            signed, credentials_of={ACCESS: credentials}.get, wall=WHEN
        ).access_key
    except SignatureError as error:
        user = error.code

    assert expected == user


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens, signatures and hashes use compare_digest, never ==."""
    compared: list[tuple[object, object]] = []
    digest = hmac.compare_digest

    def watched(first: bytes, right: bytes) -> bool:
        compared.append((first, right))
        return digest(first, right)

    monkeypatch.setattr(signing.hmac, "compare_digest", watched)
    signing.verify(VEADK, credentials_of={ACCESS: TEMPORARY}.get, wall=WHEN)

    assert (b"token", b"token") in compared
    signature = VEADK.headers["authorization"].rpartition("=")[2]
    assert (signature, signature) in compared


@pytest.mark.parametrize(
    "name", ["authorization", "host", "x-date", "x-content-sha256", "x-security-token"]
)
def test_a_repeated_security_header_is_refused(name: str) -> None:
    """It is unclear which one was signed; the error names the header."""
    twice = replace(VEADK, repeated=frozenset({name}))

    with pytest.raises(SignatureError, match=f"header {name} stands in the request more") as caught:
        verify(twice)
    assert "SignatureDoesNotMatch" == caught.value.code
