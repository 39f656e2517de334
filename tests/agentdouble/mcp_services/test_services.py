from __future__ import annotations

import copy
import json
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer

from agentdouble import Emulator
from agentdouble.errors import (
    BackendError,
    ServiceKeyError,
    ServiceNameError,
    ServiceNameTakenError,
    UnknownServiceError,
)
from agentdouble.mcp_services import Key, McpBackend, access_record
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import TIMEOUT_S, background
from tests.agentdouble.mcp_services.backend import Backend, server

pytestmark = pytest.mark.smoke


def at(double: Emulator, name: str) -> str:
    return f"{double.url}/mcp/{name}"


def works(double: Emulator, name: str, key: str | None = None) -> bool:
    """Call a service's tool with its access record, or with another key."""
    access = double.mcp.record(name)["mcpServers"][name]
    key = key or access["headers"]["Authorization"].removeprefix("Bearer ")
    session = mcp_wire.open_session(access["httpUrl"], key)
    arguments = {"for": name}
    answer = mcp_wire.call(access["httpUrl"], key, session, "echo", **arguments)
    return bool({"arguments": arguments} == answer["structuredContent"])


def test_access_record_has_the_specified_shape(services: Emulator, backend: Backend) -> None:
    """Section 2.5, with the gateway's address and the service's first key (SVC-03)."""
    service = services.mcp.create("shape", f"{backend.url}/mcp", key="the-key")

    assert {
        "mcpServers": {
            "shape": {
                "httpUrl": f"{services.url}/mcp/shape",
                "headers": {"Authorization": "Bearer the-key"},
            }
        }
    } == services.mcp.record("shape")
    assert access_record(service, services.url + "/") == services.mcp.record("shape")
    assert f"<Service 'shape' {service.id}, keys: default>" == repr(service)


def test_service_is_created_found_and_deleted(services: Emulator, backend: Backend) -> None:
    """Calls work as long as it exists."""
    before = services.mcp.list()
    service = services.mcp.create("passing", f"{backend.url}/mcp")
    url, key = at(services, "passing"), service.keys[0].value

    assert works(services, "passing")
    assert ((*before, service), service) == (services.mcp.list(), services.mcp.get("passing"))
    assert ("passing", McpBackend(f"{backend.url}/mcp"), "default") == (
        service.name,
        service.backend,
        service.keys[0].name,
    )

    services.mcp.delete("passing")

    assert before == services.mcp.list()
    assert (404, "There is no MCP service 'passing'.") == mcp_wire.error(
        mcp_wire.post(url, mcp_wire.INITIALIZE, key)
    )
    with pytest.raises(UnknownServiceError, match="There is no MCP service 'passing'"):
        services.mcp.delete("passing")


def test_generated_keys_are_random_and_hidden(services: Emulator, backend: Backend) -> None:
    """Each service has a different key; no repr contains it."""
    first, other = (services.mcp.create(name, f"{backend.url}/mcp") for name in ("k1", "k2"))

    assert first.keys[0].value != other.keys[0].value
    assert 43 == len(first.keys[0].value)
    assert first.keys[0].value not in repr(first)
    assert (
        401
        == mcp_wire.post(at(services, "k1"), mcp_wire.INITIALIZE, other.keys[0].value).status_code
    )


def test_keys_can_be_added_and_revoked(services: Emulator, backend: Backend) -> None:
    """The record shows the first remaining key, or none."""
    first = services.mcp.create("keys", f"{backend.url}/mcp").keys[0].value
    second = services.mcp.new_key("keys", "second")
    third = services.mcp.new_key("keys", "third", "of-my-own")
    assert all(works(services, "keys", key) for key in (first, second, third))

    services.mcp.revoke("keys", "default")

    authorization = services.mcp.record("keys")["mcpServers"]["keys"]["headers"]["Authorization"]
    assert (f"Bearer {second}", "of-my-own") == (authorization, third)
    assert 401 == mcp_wire.post(at(services, "keys"), mcp_wire.INITIALIZE, first).status_code
    assert works(services, "keys")
    for name in ("second", "third"):
        services.mcp.revoke("keys", name)
    with pytest.raises(ServiceKeyError, match="'keys' has no key left"):
        services.mcp.record("keys")


@pytest.mark.parametrize("name", ["", "a/b", "x" * 129])
def test_invalid_service_name_is_refused(services: Emulator, name: str) -> None:
    """The error describes valid names."""
    with pytest.raises(ServiceNameError, match="use 1 to 128 ASCII letters") as caught:
        services.mcp.create(name, "http://127.0.0.1/mcp")

    assert name == caught.value.service


def test_duplicate_service_name_is_refused(services: Emulator, backend: Backend) -> None:
    """Of concurrent creations, one succeeds."""

    def make() -> str:
        try:
            return services.mcp.create("once", f"{backend.url}/mcp").id
        except ServiceNameTakenError as error:
            return str(error)

    ids = sorted({future.result(TIMEOUT_S) for future in [background(make) for _ in range(4)]})

    conflict = "MCP service 'once' already exists. Delete it, or use another name."
    assert [conflict, services.mcp.get("once").id] == ids


@pytest.mark.parametrize("key", ["two words", "line\r\nX-More: 1"])
def test_unsendable_key_is_refused(services: Emulator, key: str) -> None:
    """Before anything is created; the error does not show it."""
    with pytest.raises(ServiceKeyError, match="A key of the MCP service 'unsent' cannot be sent"):
        services.mcp.create("unsent", "http://127.0.0.1/mcp", key=key)
    with pytest.raises(UnknownServiceError):
        services.mcp.get("unsent")


def test_invalid_key_names_are_refused(services: Emulator, backend: Backend) -> None:
    """Duplicate and unknown ones."""
    services.mcp.create("wrong-keys", f"{backend.url}/mcp")

    with pytest.raises(ServiceKeyError, match="two keys with the name 'default'"):
        services.mcp.new_key("wrong-keys", "default")
    with pytest.raises(ServiceKeyError, match="has no key 'other'; it has 'default'"):
        services.mcp.revoke("wrong-keys", "other")


@pytest.mark.parametrize("url", ["nothing", "ftp://host/mcp", "http://user:secret@host/mcp"])
def test_invalid_backend_address_is_refused(services: Emulator, url: str) -> None:
    """On creation, without a password in the message."""
    with pytest.raises(BackendError) as caught:
        services.mcp.create("unaddressed", url)

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("value", [None, ["http://host/mcp"]])
def test_invalid_backend_type_is_refused(services: Emulator, value: Any) -> None:
    """The error lists the valid ones."""
    with pytest.raises(BackendError, match="is not a backend: give the address of an MCP server"):
        services.mcp.create("impossible", value)


@pytest.mark.parametrize("headers", [{"a b": "c"}, {"A": "c\r\nB: d"}])
def test_unsendable_headers_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(BackendError, match="cannot be sent"):
        McpBackend("http://127.0.0.1/mcp", headers)


def test_in_process_server_can_be_a_service(services: Emulator, backend: Backend) -> None:
    """The MCP SDK's low-level server, and its decorated one."""
    decorated = MCPServer("decorated", log_level="WARNING")

    @decorated.tool()
    def echo(text: str) -> str:
        return text

    services.mcp.create("low-level", server(backend))
    services.mcp.create("decorated", decorated, key="key")
    session = mcp_wire.open_session(at(services, "decorated"), "key")

    assert works(services, "low-level")
    assert {"result": "hi"} == mcp_wire.call(
        at(services, "decorated"), "key", session, "echo", text="hi"
    )["structuredContent"]


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        ({"Host": "evil.example"}, "ForbiddenHost"),
        ({"Origin": "https://evil.example"}, "ForbiddenOrigin"),
    ],
)
def test_foreign_host_or_page_cannot_reach_a_service(
    services: Emulator, backend: Backend, sent: dict[str, str], kind: str
) -> None:
    """Not even with its key."""
    name = kind.lower()
    services.mcp.create(name, f"{backend.url}/mcp", key="key")
    answer = mcp_wire.http.post(
        at(services, name), json=mcp_wire.INITIALIZE, headers={**mcp_wire.headers("key"), **sent}
    )

    assert (403, {"type": kind}) == (answer.status_code, answer.json()["error"]["data"])
    assert [] == backend.received


def test_body_over_the_limit_does_not_reach_a_backend(services: Emulator, backend: Backend) -> None:
    """The limit is MCP's 4 MiB (U-LIMITS), also without a Content-Length."""
    url = at(services, "limit")
    services.mcp.create("limit", f"{backend.url}/mcp", key="key")
    body = json.dumps({**mcp_wire.INITIALIZE, "padding": "x" * 4 * 1024 * 1024}).encode()
    pieces = (body[start : start + 65536] for start in range(0, len(body), 65536))

    answer = mcp_wire.http.post(url, content=pieces, headers=mcp_wire.headers("key"))

    assert (413, "The request body is larger than 4194304 bytes.") == mcp_wire.error(answer)
    assert [] == backend.received


def test_service_needs_its_own_key_despite_the_api_key(backend: Backend) -> None:
    """The double's key opens no service, a service's key nothing else."""
    with Emulator(api_key="the-double-s", unknowns={"U-MCP-UNAUTHORIZED": "403"}) as double:
        double.mcp.create("own", f"{backend.url}/mcp", key="own-key")

        assert works(double, "own")
        answer = mcp_wire.post(at(double, "own"), mcp_wire.INITIALIZE, "the-double-s")
        assert 403 == mcp_wire.error(answer)[0]
        assert "www-authenticate" not in answer.headers
        assert "U-MCP-UNAUTHORIZED" in answer.headers["x-agentdouble-unknowns"]
        elsewhere = mcp_wire.http.get(double.url + "/ping", headers=mcp_wire.headers("own-key"))
        assert 401 == elsewhere.status_code


def test_services_and_keys_survive_a_restart(tmp_path: Path, backend: Backend) -> None:
    """With a state; services of in-process servers do not."""
    state = f"sqlite:///{tmp_path / 'state.db'}"
    behind = McpBackend(
        f"{backend.url}/needy", {"Authorization": "Bearer the-backend-s-own-secret"}
    )
    with Emulator(state=state) as double:
        double.mcp.create("kept", behind, key="first")
        double.mcp.new_key("kept", "second", "second")
        double.mcp.create("gone", f"{backend.url}/mcp")
        double.mcp.delete("gone")
        double.mcp.create("of-the-process", server(backend))
        double.mcp.create("no-longer", f"{backend.url}/mcp")
        double.mcp.update("no-longer", server(backend))
        service = double.mcp.get("kept")
        session = mcp_wire.open_session(at(double, "kept"), "first")

    with Emulator(state=state) as double:
        assert (service,) == double.mcp.list()
        assert (Key("default", "first"), Key("second", "second")) == service.keys
        assert works(double, "kept", "first")
        assert works(double, "kept", "second")
        ping = mcp_wire.post(at(double, "kept"), mcp_wire.message("ping"), "second", session)
        assert 404 == ping.status_code
        double.reset(keep=())

    with Emulator(state=state) as double:
        assert () == double.mcp.list()


def test_open_streams_do_not_delay_shutdown(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    """Clients that wait for notifications see their streams end."""
    opened = threading.Event()
    with Emulator() as double:
        url = at(double, "streaming")
        double.mcp.create("streaming", f"{backend.url}/mcp", key="key")
        session = mcp_wire.open_session(url, "key")

        def listen() -> None:
            with mcp_wire.streamed(url, "key", session) as (_, events):
                opened.set()
                assert [] == list(events)

        listening = background(listen)
        assert opened.wait(TIMEOUT_S)

    listening.result(TIMEOUT_S)
    assert [] == [record.message for record in caplog.records if record.levelname == "ERROR"]


SECRET = "sk-very-secret"
WHOLE = {
    "mcpServers": {
        "<weather>": {
            "httpUrl": "http://127.0.0.1:1/mcp/<weather>",
            "headers": {"Authorization": f"Bearer {SECRET}"},
        }
    }
}


class Weather:
    name = "<weather>"
    keys = (Key("default", SECRET),)


def test_record_is_a_dict_with_its_key() -> None:
    """Any function that takes a dict gets it whole."""
    record = access_record(Weather(), "http://127.0.0.1:1/")

    assert isinstance(record, dict)
    assert WHOLE == record == copy.deepcopy(record) == pickle.loads(pickle.dumps(record))
    assert json.dumps(WHOLE) == json.dumps(record)


def test_record_s_repr_hides_its_key() -> None:
    """It says how to get the whole record."""
    text = repr(access_record(Weather(), "http://127.0.0.1:1/"))

    assert (False, True) == (SECRET in text, "json.dumps()" in text)
