from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import starlette.routing
from openapi_spec_validator import OpenAPIV31SpecValidator

from agentdouble import A2AApp, Emulator, MCPApp, SimpleApp
from agentdouble.control_plane.action_names import OF_THE_PLATFORM
from agentdouble.openapi.operation import operation_of
from tests.agentdouble.calling import http, refusal, send, signed
from tests.agentdouble.openapi.driver import document_of, operations_of

DOCUMENTS = ("/openapi.json", "/_emulator/openapi.json")


@pytest.fixture(params=DOCUMENTS)
def either(request: pytest.FixtureRequest, described: Emulator) -> dict[str, Any]:
    return document_of(described, request.param)


@pytest.mark.slow
@pytest.mark.once  # ten seconds: the validator looks at each reference of each operation
def test_it_is_an_openapi_document(either: dict[str, Any]) -> None:
    """Of version 3.1, by the specification's own schema."""
    assert [] == [error.message for error in OpenAPIV31SpecValidator(either).iter_errors()]


def test_each_operation_has_a_name_and_a_summary(either: dict[str, Any]) -> None:
    """No two have the same name, by which generated clients call them."""
    operations = [operation for _, _, operation in operations_of(either)]
    names = [one["operationId"] for one in operations]

    assert len(set(names)) == len(names)
    assert [] == [one["operationId"] for one in operations if not one["summary"]]
    assert [] == [name for name in names if not re.fullmatch(r"[A-Za-z]\w*", name)]


def test_each_operation_says_what_it_answers(either: dict[str, Any]) -> None:
    """Also how it refuses: with a status, and a schema of the body."""
    lacking = [
        f"{operation['operationId']} {status}"
        for _, _, operation in operations_of(either)
        for status, response in operation["responses"].items()
        if status.startswith(("4", "5")) and "content" not in response
    ]

    assert ["get_ping 404"] == lacking or [] == lacking
    assert all(len(one["responses"]) > 3 for _, _, one in operations_of(either))


def test_each_parameter_of_a_path_is_described(either: dict[str, Any]) -> None:
    """A generated client asks for it."""
    for _, path, operation in operations_of(either):
        given = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"]

        assert re.findall(r"\{(\w+)\}", path) == given


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[starlette.routing.Route]:
    """Every route that is made from now on."""
    found: list[starlette.routing.Route] = []
    make = starlette.routing.Route.__init__

    def note(self: starlette.routing.Route, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        found.append(self)

    monkeypatch.setattr(starlette.routing.Route, "__init__", note)
    return found


def apps() -> Iterator[Any]:
    yield SimpleApp("one")
    yield SimpleApp("two")
    yield MCPApp("three")
    yield MCPApp("four")
    yield A2AApp("five", runner=object())
    yield A2AApp("six", runner=object())


def test_each_route_that_is_made_is_described(made: list[starlette.routing.Route]) -> None:
    """Except those that only lead to other routes, refuse by name, or are the workbench's own."""
    with Emulator(*apps()) as double:
        paths = {path for one in DOCUMENTS for path in document_of(double, one)["paths"]}

    missing = {
        route.path for route in made if not _leads_on(route) and not _is_there(route.path, paths)
    }
    assert {"/directory", "/facts", "/live/abandon", "/live/command"} == missing
    assert {"/runtimes/two/invoke", "/runtimes/four/mcp", "/runtimes/six"} <= paths
    assert "/runtimes/six/message:send" in paths


def _is_there(path: str, paths: set[str]) -> bool:
    plain = re.sub(r"\{(\w+):\w+\}", r"{\1}", path)
    return any(one == plain or one.endswith(plain) for one in paths)


def _leads_on(route: starlette.routing.Route) -> bool:
    endpoint = route.endpoint
    if any(hasattr(endpoint, name) for name in ("routes", "late_routes")):
        return True
    methods = sorted(route.methods or ())
    return bool(methods) and operation_of(endpoint, methods[0]).hidden


def test_each_operation_is_served(described: Emulator, either: dict[str, Any]) -> None:
    """No request to it is answered with the words for an unknown path, action or method."""
    unserved = []
    for method, path, operation in operations_of(either):
        if "Action=" in path:
            continue
        at = re.sub(r"\{\w+\}", "x", path)
        with http.stream(method, described.url + at) as answer:
            unknown = answer.status_code == 404 and answer.read() in (
                b"Not Found",
                b'{"detail":"Not Found"}',
            )
        if unknown or answer.status_code == 405:
            unserved.append(f"{operation['operationId']} {answer.status_code}")

    assert [] == unserved


def test_each_action_that_is_built_is_described(
    described: Emulator, document: dict[str, Any]
) -> None:
    """The others are refused by name."""
    found = {path[len("/?Action=") :].partition("&")[0] for path in document["paths"]}

    built = {name for name in OF_THE_PLATFORM if name in found}
    others = OF_THE_PLATFORM - built
    assert {501} == {refusal(described, name)[0] for name in others}
    answers = [send(signed(described, {}, action=name)) for name in built]
    assert 501 not in {one.status_code for one in answers}


def test_the_codes_of_errors_are_named(document: dict[str, Any]) -> None:
    """Those of the platform, and those of the classes of errors that an action raises."""
    responses = document["paths"]["/?Action=DeleteTool&Version=2025-10-30"]["post"]["responses"]

    assert "Unauthorized: InvalidAccessKey, " in responses["401"]["description"]
    assert "InvalidResource.Fixed" in responses["409"]["description"]
    assert "InvalidParameter, " in responses["400"]["description"]


def test_it_is_made_once(described: Emulator) -> None:
    """Byte for byte the same."""
    first, again = (http.get(f"{described.url}/openapi.json").content for _ in range(2))

    assert first == again


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("/apps/echo/users/u/sessions/a%0Ab", 404, "detail"),
        ("/mcp/a%0Ab", 404, "jsonrpc"),
        ("/runtimes/a%0Ab", 404, "error"),
        ("/v1/a%0Ab", 404, "success"),
        ("/tasks/a%0Ab", 400, "error"),
        ("/_emulator/journal/a%0Ab", 404, "error"),
        ("/_emulator/runtimes/a%0Ab/logs", 404, "error"),
    ],
)
def test_a_line_feed_is_a_character_like_others(
    described: Emulator, path: str, status: int, kind: str
) -> None:
    """The surface at a path answers, in its own format."""
    answer = http.get(described.url + path)

    assert (status, True) == (answer.status_code, kind in answer.json())


def test_a_double_with_a_key_says_so() -> None:
    """In the security of the operations, and by asking for the key itself."""
    with Emulator(api_key="k-1") as double:
        unkeyed = http.get(f"{double.url}/openapi.json").status_code
        answer = http.get(f"{double.url}/openapi.json", headers={"X-API-Key": "k-1"})

    assert 401 == unkeyed
    operation = answer.json()["paths"]["/list-apps"]["get"]
    assert [{"apiKey": []}] == operation["security"]
    assert "401" in operation["responses"]


def test_the_own_routes_are_guarded(described: Emulator) -> None:
    """A web page reads neither."""
    for path in DOCUMENTS:
        answer = http.get(described.url + path, headers={"Origin": "https://evil.example"})

        assert 403 == answer.status_code
