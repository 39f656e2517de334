from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agentdouble import Emulator
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import act, refusal
from tests.agentdouble.mcp_services.backend import API, CREDENTIALS, Backend

pytestmark = pytest.mark.smoke

INBOUND = "InboundAuthorizerConfiguration"
OUTBOUND = "OutboundAuthorizerConfiguration"


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    with Backend().serving() as serving:
        yield serving


def custom(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    where = {"Domain": parts.hostname, "Port": parts.port, "ProtocolType": "http"}
    return {"CustomConfiguration": where}


def body(backend: Backend, name: str = "one", path: str = "/mcp", **more: Any) -> dict[str, Any]:
    """Return a request for a service in front of an MCP server."""
    return {
        "Name": name,
        "Path": path,
        "ProtocolType": "MCP",
        "BackendType": "Custom",
        "BackendConfiguration": custom(backend.url),
        **more,
    }


def api(name: str = "api", **more: Any) -> dict[str, Any]:
    """Return a request for a service in front of an HTTP API."""
    return {
        "Name": name,
        "Path": "/",
        "ProtocolType": "HTTP",
        "BackendType": "Custom",
        "ProtocolConfiguration": {"HttpApiConfiguration": {"Configuration": json.dumps(API)}},
        **more,
    }


def by_key(*keys: dict[str, str], **more: str) -> dict[str, Any]:
    authorizer = {"KeyAuth": {"ApiKeys": list(keys), **more}}
    return {"AuthorizerType": "ApiKey", "Authorizer": authorizer}


def create(double: Emulator, request: dict[str, Any]) -> str:
    service_id: str = act(double, "CreateMCPService", **request)["MCPServiceId"]
    return service_id


def get(double: Emulator, service: str) -> dict[str, Any]:
    answer: dict[str, Any] = act(double, "GetMCPService", MCPServiceId=service)["MCPService"]
    return answer


def unread(double: Emulator) -> list[str]:
    return double.journal.entries()[-1].unread


def called(service: dict[str, Any], tool: str, authorizer: str = INBOUND) -> dict[str, Any]:
    """Call a tool with the address and key as the platform's client reads them."""
    url = service["NetworkConfigurations"][0]["Endpoint"] + service["Path"]
    key = service[authorizer]["Authorizer"]["KeyAuth"]["ApiKeys"][0]["Key"]
    return mcp_wire.call(url, key, mcp_wire.open_session(url, key), tool, a=1)


def test_created_service_works(double: Emulator, backend: Backend) -> None:
    """SVC-01: at Endpoint and Path, with its key, which matches the access record."""
    service_id = create(double, body(backend))

    service = get(double, service_id)

    assert {
        "MCPServiceId": service_id,
        "Name": "one",
        "Path": "/mcp/one",
        "ProjectName": "default",
        "ProtocolType": "MCP",
        "Status": "Ready",
        "Tags": [],
        "CreatedAt": service["CreatedAt"],
        "UpdatedAt": service["CreatedAt"],
        "NetworkConfigurations": [{"NetworkType": "public", "Endpoint": double.url}],
        "BackendType": "Custom",
        "BackendConfiguration": custom(backend.url),
        "ProtocolConfiguration": {},
        INBOUND: {
            "AuthorizerType": "ApiKey",
            "Authorizer": {
                "KeyAuth": {
                    "ApiKeyLocation": "Header",
                    "ApiKeys": [{"Key": double.mcp.get("one").key_values[0], "Name": "default"}],
                    "Parameter": "Authorization",
                }
            },
        },
    } == service
    assert {"arguments": {"a": 1}} == called(service, "echo")["structuredContent"]


def test_service_fields_are_returned_unchanged(double: Emulator, backend: Backend) -> None:
    """Unsupported fields are kept, returned, and listed as unread in the journal."""
    vpc = {"VpcId": "vpc-1"}
    backend_ = custom(backend.url)
    backend_["CustomConfiguration"]["TlsSettings"] = {"TlsMode": "Simple"}
    fields: dict[str, Any] = {
        "ProjectName": "mine",
        "BackendType": "Domain",
        "BackendConfiguration": backend_,
        "Tags": [{"Key": "team", "Value": "red"}],
        OUTBOUND: by_key({"Name": "out", "Key": "k"}),
    }

    service_id = create(
        double,
        body(
            backend,
            **fields,
            NetworkConfiguration={"EnablePrivateNetwork": True, "VpcConfiguration": vpc},
            New={"Field": 1},
        ),
    )

    assert {
        *("BackendConfiguration.CustomConfiguration.TlsSettings", "BackendType"),
        *("NetworkConfiguration", "New"),
    } == set(unread(double))
    service = get(double, service_id)
    assert fields == {name: service[name] for name in fields}
    assert [
        {"NetworkType": kind, "Endpoint": double.url, "VpcConfiguration": vpc}
        for kind in ("public", "private")
    ] == service["NetworkConfigurations"]


def test_given_keys_are_used_and_others_generated(double: Emulator, backend: Backend) -> None:
    """An update keeps the keys that it does not mention."""
    authorizer = by_key({"Name": "mine", "Key": "of-my-own"}, {"Name": "made"})
    service_id = create(double, body(backend, **{INBOUND: authorizer}))
    my_key, other = double.mcp.get("one").keys

    update = {INBOUND: by_key({"Name": "made"}, {"Name": "new", "Key": "newer"})}
    act(double, "UpdateMCPService", MCPServiceId=service_id, **update)

    kept_key, new = double.mcp.get("one").keys
    assert ("mine", "of-my-own", "made") == (my_key.name, my_key.value, other.name)
    assert (other, ("new", "newer")) == (kept_key, (new.name, new.value))
    url = f"{double.url}/mcp/one"
    assert 401 == mcp_wire.post(url, mcp_wire.INITIALIZE, "of-my-own").status_code


def test_journal_has_no_keys(double: Emulator, backend: Backend) -> None:
    """Neither the clients' nor the backend's, in requests and answers of any shape."""
    keys = ["in-1]", 'in-2"', "in-3\\"]
    authorizer = by_key(*({"Name": f"n{index}", "Key": key} for index, key in enumerate(keys)))
    service_id = create(double, body(backend, **{INBOUND: authorizer, OUTBOUND: _out("out-4")}))
    get(double, service_id)

    entries = double.journal.entries()[-2:]

    recorded = "".join(entry.request_body + entry.response_body + entry.curl() for entry in entries)
    assert '"Key": "***"' in recorded
    assert [] == [secret for secret in ("in-1", "in-2", "in-3", "out-4") if secret in recorded]
    assert double.mcp.get("one").key_values == tuple(keys)


def test_backend_receives_its_key(double: Emulator, backend: Backend) -> None:
    """Outbound authorization: as a bearer, or in another header."""
    secret = CREDENTIALS.removeprefix("Bearer ")
    service_id = create(
        double,
        body(backend, path="/needy", **{OUTBOUND: by_key({"Name": "out", "Key": secret})}),
    )
    create(
        double,
        body(
            backend, "named", **{OUTBOUND: by_key({"Name": "o", "Key": "k"}, Parameter="X-Api-Key")}
        ),
    )

    assert called(get(double, service_id), "echo")
    assert {"X-Api-Key": "k"} == _target(double, "named")[1]


def _backend(double: Emulator, name: str) -> Any:
    return double.mcp.get(name).backend


def _target(double: Emulator, name: str = "one") -> tuple[str, dict[str, str]]:
    behind = _backend(double, name)
    return behind.url, dict(behind.headers)


def test_definition_becomes_tools(double: Emulator) -> None:
    """SVC-02: at the address of the definition or of the request."""
    service_id = create(double, api())
    create(double, api("there", BackendConfiguration=custom("http://h:81"), Path="/v1/"))
    service = get(double, service_id)

    assert ("HTTP", {}) == (service["ProtocolType"], service["BackendConfiguration"])
    assert API == json.loads(service["ProtocolConfiguration"]["ProtocolConvertConfiguration"])
    assert [None, "http://h:81/v1"] == [_backend(double, api).base_url for api in ("api", "there")]
    url, key = f"{double.url}/mcp/api", double.mcp.get("api").key_values[0]
    listed = mcp_wire.post(
        url, mcp_wire.message("tools/list"), key, mcp_wire.open_session(url, key)
    )
    assert ["pets"] == [tool["name"] for tool in mcp_wire.result(listed)["tools"]]


def test_update_changes_only_the_given_fields(double: Emulator, backend: Backend) -> None:
    """A new backend address keeps the backend's key and vice versa; clients' keys stay."""
    out = {OUTBOUND: by_key({"Name": "o", "Key": "first"})}
    service_id = create(double, body(backend, path="/nothing", **out))
    before = get(double, service_id)
    elsewhere = custom("http://127.0.0.1:81")

    assert {"MCPServiceId": service_id} == act(
        double, "UpdateMCPService", MCPServiceId=service_id, BackendConfiguration=elsewhere
    )
    moved = _target(double)
    act(double, "UpdateMCPService", MCPServiceId=service_id, **{OUTBOUND: _out("second")})

    assert [
        ("http://127.0.0.1:81/nothing", {"Authorization": f"Bearer {key}"})
        for key in ("first", "second")
    ] == [moved, _target(double)]
    after = get(double, service_id)
    assert {
        **before,
        "BackendConfiguration": elsewhere,
        OUTBOUND: _out("second"),
        "UpdatedAt": after["UpdatedAt"],
    } == after


def _out(key: str) -> dict[str, Any]:
    return by_key({"Name": "o", "Key": key})


def test_service_created_in_python_is_returned(double: Emulator, backend: Backend) -> None:
    """It has the same fields and can be updated."""
    service = double.mcp.create("python", f"{backend.url}/other")

    entry = get(double, service.id)
    assert (custom(backend.url), "MCP") == (entry["BackendConfiguration"], entry["ProtocolType"])

    act(double, "UpdateMCPService", MCPServiceId=service.id, **{OUTBOUND: _out("k")})
    assert (f"{backend.url}/other", {"Authorization": "Bearer k"}) == _target(double, "python")


def test_in_process_server_cannot_get_another_backend(double: Emulator) -> None:
    from mcp.server import MCPServer

    inner = double.mcp.create("inner", MCPServer("inner", log_level="WARNING"))

    assert {} == get(double, inner.id)["BackendConfiguration"]
    status, code, message = refusal(
        double, "UpdateMCPService", MCPServiceId=inner.id, BackendConfiguration=custom("http://h:1")
    )
    assert (400, "InvalidParameter") == (status, code)
    assert "this service is backed by a server inside the double's process" in message


def test_services_are_listed_and_deleted(double: Emulator, backend: Backend) -> None:
    """In pages, by filter, project and tag."""
    tag = {"Key": "team", "Value": "red"}
    ids = [create(double, body(backend, name)) for name in ("a-1", "a-2")]
    ids.append(create(double, body(backend, "b", ProjectName="p", Tags=[tag])))

    def names(**query: Any) -> list[str]:
        listed = act(double, "ListMCPServices", **query)["MCPServices"]
        return [service["Name"] for service in listed]

    first = act(double, "ListMCPServices", MaxResults=2)
    rest = act(double, "ListMCPServices", MaxResults=2, NextToken=first["NextToken"])
    assert ["a-1", "a-2", "b"] == [
        service["Name"] for page in (first, rest) for service in page["MCPServices"]
    ]
    assert "" == rest["NextToken"]
    assert [ids[2]] == [service["MCPServiceId"] for service in rest["MCPServices"]]
    assert ["a-1", "a-2"] == names(Filters=[{"NameContains": "Name", "Values": ["a-"]}])
    assert ["a-2"] == names(Filters=[{"Name": "Id", "Values": [ids[1]]}])
    assert ["b"] == names(ProjectName="p")
    assert ["b"] == names(TagFilters=[{"Key": "team", "Values": ["red"]}])
    assert ["b"] == names(PageNumber=3, PageSize=1)

    assert {"MCPServiceId": ids[0]} == act(double, "DeleteMCPService", MCPServiceId=ids[0])

    assert ["a-2", "b"] == names()
    unknown = (
        404,
        "InvalidResource.NotFound",
        f"There is no MCP service {ids[0]!r}; this double has 'a-2', 'b'.",
    )
    for action in ("GetMCPService", "UpdateMCPService", "DeleteMCPService"):
        assert unknown == refusal(double, action, MCPServiceId=ids[0])


def test_client_token_creates_one_service(double: Emulator, backend: Backend) -> None:
    """Also with generated keys; a different request must not reuse the token."""
    request = body(backend, ClientToken="c-1", **{INBOUND: by_key({"Name": "made"})})

    assert create(double, request) == create(double, request)
    status, code, message = refusal(double, "CreateMCPService", **{**request, "Name": "two"})

    assert (400, "InvalidParameter") == (status, code)
    assert message.startswith("The parameter ClientToken is invalid: another request")


def _of(kind: str, **fields: Any) -> dict[str, Any]:
    return {"BackendConfiguration": {kind: fields}}


def _by(**authorizer: Any) -> dict[str, Any]:
    return {"AuthorizerType": "ApiKey", "Authorizer": authorizer}


WRONG_API = {"HttpApiConfiguration": {"Configuration": '{"swagger": "1"}'}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "code", "expected"),
    [
        ({"Name": "a/b"}, "InvalidParameter", "'a/b' is not a valid name for an MCP service"),
        (_of("CustomConfiguration"), "MissingParameter", "missing BackendConfiguration.Custom"),
        (_of("CustomConfiguration", Domain="a@b/c"), "InvalidParameter", "is not a host name"),
        (_of("CustomMcpConfiguration"), "NotImplemented", "A server that the platform runs ("),
        (_of("EcsConfiguration"), "NotImplemented", "A backend on machines of the cloud"),
        (
            {INBOUND: _by(CustomJwtAuthorizer={"DiscoveryUrl": "https://x"})},
            *("NotImplemented", "Authorization by CustomJwtAuthorizer"),
        ),
        (
            {INBOUND: by_key({"Name": "a"}, ApiKeyLocation="Query")},
            *("NotImplemented", "A key in 'Query'"),
        ),
        ({OUTBOUND: {"AuthorizerType": "ApiKey"}}, "MissingParameter", "KeyAuth.ApiKeys"),
        (
            {OUTBOUND: by_key({"Name": "a", "Key": "k\r\nX: 1"})},
            *("InvalidParameter", "The header 'Authorization' for a backend cannot be sent"),
        ),
        (
            {"ProtocolType": "HTTP", "ProtocolConfiguration": WRONG_API},
            *("InvalidParameter", "swagger '1' is not supported"),
        ),
    ],
)
def test_invalid_services_are_refused_by_field(
    double: Emulator, backend: Backend, change: dict[str, Any], code: str, expected: str
) -> None:
    """Nothing is created."""
    _, param, message = refusal(double, "CreateMCPService", **{**body(backend), **change})

    assert (code, True) == (param, expected in message), message
    assert [] == act(double, "ListMCPServices")["MCPServices"]


@pytest.mark.slow
def test_services_survive_a_restart(tmp_path: Path, backend: Backend) -> None:
    """With --state, including their definitions."""
    state = f"sqlite:///{tmp_path / 'double.db'}"

    def services(double: Emulator) -> list[dict[str, Any]]:
        services = [get(double, double.mcp.get(name).id) for name in ("one", "api")]
        for service in services:
            service.pop("NetworkConfigurations")
        return services

    with Emulator(state=state) as double:
        create(double, body(backend, Tags=[{"Key": "a"}], **{OUTBOUND: _out("k")}))
        create(double, api())
        before = services(double)
    with Emulator(state=state) as double:
        assert before == services(double)
