"""What only Swagger 2.0 has: forms of parameters, its own headers, and hosts, on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services import openapi
from agentdouble.mcp_services.openapi.definition import address_of
from tests.agentdouble.mcp_services.openapi.calling import Json, capture, swagger_2

FORM, MULTIPART, JSON = (
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "application/json",
)
BODY: Json = {"name": "b", "in": "body", "schema": {}}


def parameter(name: str, where: str = "formData", **more: Any) -> Json:
    return {"name": name, "in": where, "type": "string", **more}


@pytest.mark.parametrize(
    ("consumes", "kind"),
    [
        ([JSON], FORM),
        (["application/xml", JSON], FORM),
        ([JSON, MULTIPART], MULTIPART),
        ([MULTIPART, FORM], FORM),
        ([FORM + "; charset=utf-8"], FORM),
    ],
)
def test_form_is_what_consumes_says(api: str, consumes: list[str], kind: str) -> None:
    """It is urlencoded if ``consumes`` names no form, as a document's often does."""
    document = swagger_2({"parameters": [parameter("a")]}, consumes=consumes)

    assert kind == capture(document, api, {"a": "x"})["headers"]["content-type"].partition(";")[0]


def test_body_beside_a_form_is_refused() -> None:
    """One of them would not be sent."""
    with pytest.raises(DefinitionError, match="in 'body' and in 'formData'"):
        openapi.load(swagger_2({"parameters": [parameter("a"), BODY]}))


@pytest.mark.parametrize("media_type", ["image/png", "application/octet-stream"])
def test_base64_body_behind_a_reference_is_sent_as_given(api: str, media_type: str) -> None:
    body = {**BODY, "schema": {"$ref": "#/definitions/Picture"}}
    document = swagger_2(
        {"parameters": [body], "consumes": [media_type]},
        definitions={"Picture": {"type": "string", "format": "byte"}},
    )

    assert "aGk=" == capture(document, api, {"body": "aGk="})["body"]


@pytest.mark.parametrize("name", ["Accept", "accept", "Content-Type", "Authorization", "Cookie"])
def test_each_header_is_an_argument(api: str, name: str) -> None:
    """Only OpenAPI 3 ignores some of them; the definition's own value is the default."""
    document = swagger_2({"parameters": [parameter(name, "header"), BODY]}, produces=["text/csv"])

    headers = capture(document, api, {name: "text/x", "body": {}})["headers"]

    assert "text/x" == headers[name.lower()]
    default = capture(document, api, {"body": {}})["headers"]
    assert ("text/csv, */*;q=0.1", JSON) == (default["accept"], default["content-type"])


def test_caller_cannot_replace_the_boundary_of_a_form(api: str) -> None:
    """What writes the parts says it."""
    parameters = [parameter("Content-Type", "header"), parameter("f", type="file")]
    document = swagger_2({"parameters": parameters})

    request = capture(document, api, {"Content-Type": MULTIPART, "f": {"text": "hi"}})

    assert [["f", ["f", "application/octet-stream", "hi"]]] == request["parts"]


def test_arrays_in_arrays_have_their_own_delimiters(api: str) -> None:
    """At every depth, in a form."""
    inner = {"type": "array", "collectionFormat": "ssv", "items": {"type": "string"}}
    items = {"type": "array", "collectionFormat": "pipes", "items": inner}
    written = parameter("a", type="array", collectionFormat="multi", items=items)

    request = capture(
        swagger_2({"parameters": [written]}), api, {"a": [[["1", "2"], ["3"]], [["4"]]]}
    )

    assert "a=1%202%7C3&a=4" == request["body"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            {"host": "a.example:8080", "basePath": "v1/", "schemes": ["http"]},
            "http://a.example:8080/v1",
        ),
        ({"host": "localhost:8080"}, "http://localhost:8080"),
        ({"host": "a.example", "schemes": ["ws", "https", "http"]}, "https://a.example"),
    ],
)
def test_address_is_scheme_host_and_base_path(written: Json, expected: str) -> None:
    definition = openapi.load(swagger_2({"schemes": []}, **written))

    assert expected == address_of(definition, definition.operations[0], None)


@pytest.mark.parametrize("host", ["https://a.example", "", "a.example:99999", "{a}.example"])
def test_wrong_host_is_refused(host: str) -> None:
    """Else the request would go to another one; a base URL replaces it."""
    definition = openapi.load(swagger_2(host=host))

    with pytest.raises(DefinitionError, match="give base_url"):
        address_of(definition, definition.operations[0], None)
    assert "http://b" == address_of(definition, definition.operations[0], "http://b")
