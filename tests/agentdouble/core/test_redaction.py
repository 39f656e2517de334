from __future__ import annotations

import json
import time

import pytest

from agentdouble.core import redaction

SIGNATURE = "0123456789abcdef" * 4
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"
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
        ("x-ve-tip-token", "s3cret", "***"),
        ("token", "s3cret", "***"),
        ("x-security-token", "s3cret", "***"),
        ("x-jwt-assertion", "s3cret", "***"),
        ("x-amzn-oidc-data", "s3cret", "***"),
        ("x-saml-attributes", "s3cret", "***"),
        ("x-forwarded-id-token-raw", "s3cret", "***"),
        ("authentication", "Token s3cret", "Token ***"),
        ("sec-websocket-protocol", "chat, bearer, s3cret", "chat, ***, ***"),
        ("sec-websocket-protocol", "a2a, v1.token.jupyter.org.s3cret", "a2a, ***"),
        ("sec-websocket-protocol", "graphql-ws, 0123456789abcdef", "graphql-ws, ***"),
        (
            "sec-websocket-protocol",
            "v1.kernel.websocket.jupyter.org",
            "v1.kernel.websocket.jupyter.org",
        ),
        ("referer", f"http://h/p?x={JWT}", "http://h/p?x=***"),
        ("content-type", "text/plain", "text/plain"),
        ("x-token-type", "jwt", "jwt"),
        ("x-token-count", "7", "7"),
        ("access-control-allow-credentials", "true", "true"),
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
    *("client_assertion", "SAMLResponse", "id_token_new"),
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
        *("pass", "Cookie", "Set-Cookie", "DATABASE_URL", "OPENAI_KEY", "DB_AUTH", "X-Auth"),
        *("api_key_2", "password_confirmation", "connectionString", "X-Amzn-Oidc-Data"),
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


TEXTS = [
    'KEY = "s3cret"\nAPI_KEY = "s3cret"',
    "api_key: str = 's3cret'",
    'self.password = """s3cret\n"""',
    'client = Client(url, api_key="s3cret", retries=3)',
    "const apiKey = `s3cret`;",
    '{ apiKey: "s3cret", model: "m" }',
    'password := "s3cret"',
    "'password' => 's3cret'",
    'if password == "s3cret":',
    'access_token = f"s3cret"',
    'os.environ["API_KEY"] = "s3cret"',
    'os.environ.setdefault("API_KEY", "s3cret")',
    'headers.set("X-Api-Key", "s3cret")',
    "export API_KEY=s3cret",
    "docker run -e API_KEY=s3cret image",
    "API_KEY=s3cret python main.py",
    "HOST=h\nPASSWORD=s3cret\nPORT=1",
    "host=h password=s3cret dbname=d",
    "Server=h;Database=d;Password=s3cret;",
    "aws_secret_access_key = s3cret\nregion = r",
    "database:\n  password: s3cret\n  host: h",
    "My password: s3cret, and the user is ann",
    "curl -H 'Authorization: Bearer s3cret' http://h",
    "curl -H 'Authorization: Bearer secret' http://h",
    "curl -H 'X-Api-Key: secret' http://h",
    "curl -H 'Cookie: sid=s3cret; other=s3cret' http://h",
    "curl -u ann:s3cret http://h",
    "curl --user 'ann:s3cret' http://h",
    '["curl", "-u", "ann:s3cret"]',
    "wget --password=s3cret http://h",
    "tool --api-key s3cret --verbose",
    '["tool", "--token", "s3cret", "--verbose"]',
    "send it with Bearer s3cret please",
    "CREATE USER ann IDENTIFIED BY 's3cret'",
    "ALTER USER ann WITH PASSWORD 's3cret';",
    "- name: API_KEY\n  value: s3cret\n- name: PORT\n  value: 1",
    '{"env": [{"name": "API_KEY", "value": "s3cret"}, {"value": "s3cret", "name": "DB_PASSWORD"}]}',
    "<login><user>ann</user><password>s3cret</password></login>",
    '<ws:Password Type="text">s3cret</ws:Password>',
    "<secret><![CDATA[s3cret & s3cret]]></secret>",
    '<property name="api.key">1</property><property name="db.password">s3cret</property>',
    '<user name="ann" password="s3cret"/>',
    '<add key="ApiKey" value="s3cret"/>',
    "postgres://ann:s3cret/s3cret#@h/d",
    "grant_type=authorization_code&code=s3cret&client_assertion=s3cret",
    f"the token {JWT.replace('c2lnbmF0dXJl', 's3cret')} is old",
    "-----BEGIN RSA PRIVATE KEY-----\ns3cret\ns3cret\n-----END RSA PRIVATE KEY-----",
    "my key is sk-proj-s3cretAbCdEfGhIjKlMn",
    'import httpx\nauth=("ann", "s3cret")',
    "requests.get(url, auth=HTTPBasicAuth('ann', 's3cret'))",
    # two parts
    (
        '--b\r\nContent-Disposition: form-data; name="user"\r\n\r\nann\r\n'
        '--b\r\nContent-Disposition: form-data; name="password"\r\n\r\ns3cret\r\n--b--'
    ),
    (
        "--b\r\nContent-Disposition: form-data; name=token; filename=t\r\n"
        "Content-Type: text/plain\r\n\r\ns3cret\ns3cret\r\n--b--"
    ),
]


@pytest.mark.parametrize("text", TEXTS)
def test_secrets_in_code_commands_and_prompts_are_hidden(text: str) -> None:
    """As they are, inside JSON, and inside JSON in JSON, which stays JSON."""
    body = json.dumps({"code": text, "last": "shown"})
    nested = json.dumps({"OperationPayload": body})

    text, body, nested = map(redaction.without_secrets, (text, body, nested))

    assert "s3cret" not in text + body + nested
    assert "bearer secret" not in text.lower() + body.lower()
    assert "X-Api-Key: secret" not in text + body
    assert "shown" == json.loads(body)["last"]
    assert "shown" == json.loads(json.loads(nested)["OperationPayload"])["last"]
    assert "***" in json.loads(json.loads(nested)["OperationPayload"])["code"]


ORDINARY = [
    "token = read_token(1)\npassword = getpass()\nsecret = b64decode(x)",
    'api_key = os.environ["API_KEY"]\nkey = keys[0]',
    "client = Client(api_key=api_key, token=self.token, password=password)",
    "def login(user: str, password: str, token: str | None = None) -> bool:",
    'if token == "while" or token.kind == "+":\n    token = tokens[i + 1]',
    "for token in text.split():\n    count[token] += 1",
    "Args:\n    token: The token to use.\n    password: the password of the user",
    "max_tokens=100, total_tokens=5, token=7",
    "ask = getpass('Password: ')",
    '{"pass": 3, "token": 7}',
    'prompt: "What is a password?" or "How do tokens work?"',
    "Basic authentication is a scheme, and a bearer is who bears it.",
    "SyntaxError: Unexpected token '<', \"<!DOCTYPE\" is not valid JSON",
    "fetch(url, { credentials: 'include' })",
    'curl -H "Authorization: Bearer $TOKEN" -u "$LOGIN" http://h',
    'headers = {f"Bearer {token}"}',
    'sort_key = "name"; primary_key = "id"; PRIMARY_KEY = "id"',
    "docker run -u 1000:1000 --name token image",
    "date -u +%H:%M; git push -u origin main; diff -u a b",
    "<b>password</b><code>token</code><p>key: value</p>",
    '{"required": ["user", "password"], "properties": {"password": {"type": "string"}}}',
    '{"key": "colour", "value": "blue"}, {"usage": {"prompt_tokens": 12, "token": 3}}',
    '{"token_type": "Bearer", "expires_in": 3600, "nextToken": "abc", "code": "1 + 1"}',
    "print({'key': 'a', 'code': 7, 'author': 'ann', 'passed': 3, 'bypass': 'x'})",
    "x = {'assertion': 'the output has 42'}",
    "http://127.0.0.1:80/@ann http://[::1]:80/@ann http://h/p?page_token=3",
    '--b\r\nContent-Disposition: form-data; name="file"; filename="token.txt"\r\n\r\ntext\r\n--b--',
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_code_and_prose_stay_as_they_are(text: str) -> None:
    """Words such as token and password are frequent in both."""
    nested = json.dumps({"OperationPayload": json.dumps({"code": text})})

    assert text == redaction.without_secrets(text)
    assert nested == redaction.without_secrets(nested)


@pytest.mark.parametrize(
    "piece",
    [
        *(
            '"',
            "'",
            "\\",
            '\\"',
            "password",
            "a=",
            '"a":',
            '"password": "',
            "<a ",
            "<password>",
            "(",
        ),
        *(" ", "\n", "\\n", "-", "--", "-u ", "a:", "://a:", "?a=", "key=", '"key": "', "value"),
        *('"value": "a', '\\"value\\": \\"', "<![CDATA[", 'form-data; name="a"\r\n', "eyJ", "sk-"),
        *("set(", "Bearer a ", "cookie: a=", "-----BEGIN PRIVATE KEY-----", 'name="', "name: a\n"),
        *(
            '"ApiKeys": [',
            '"a": [',
            "[",
            "{",
            "password: ",
            "password = ",
            "--password ",
            "%26a%3D",
        ),
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    """Ten times the text takes ten times as long, not a hundred."""
    small, large = (piece * (size // len(piece)) for size in (10_000, 100_000))

    first, second = min(_seconds(small) for _ in range(3)), _seconds(large)

    assert second < 40 * first + 0.05


def _seconds(text: str) -> float:
    start = time.process_time()
    redaction.without_secrets(text)
    redaction.redact("sec-websocket-protocol", text)
    redaction.hide_in_query(text)
    redaction.hide_in_path(text)
    return time.process_time() - start
