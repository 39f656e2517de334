"""What each keyword of the three formats does to a request: a document with it, and the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.agentdouble.mcp_services.openapi.calling import Json

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
PLAIN: Json = {"method": "POST", "target": "/echo/7?q=a", "json": {"a": 1}}
KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}
IN_QUERY = {"type": "apiKey", "in": "query", "name": "key"}


@dataclass(frozen=True)
class Case:
    """A keyword in a document, and what it does to the request of a call."""

    change: Callable[[Json, str], object]  # of the document; the string is the API's address
    expected: Json = field(default_factory=dict)
    given: Json = field(default_factory=dict)
    headers: Json = field(default_factory=dict)
    refused: str = ""  # when the service is made, or the tool is called
    key: str | None = None
    own_address: bool = False


def operation(document: Json) -> Json:
    (item,) = document["paths"].values()
    found: Json = item["post"]
    return found


def parameter(document: Json, name: str = "q") -> Json:
    found: Json
    (found,) = [each for each in operation(document)["parameters"] if each["name"] == name]
    return found


def media(document: Json) -> Json:
    found: Json
    (found,) = operation(document)["requestBody"]["content"].values()
    return found


def schema(document: Json) -> Json:
    if "swagger" in document:
        written: Json = parameter(document, "body")["schema"]
    else:
        written = media(document)["schema"]
    return written


def put(document: Json, place: Callable[[Json], Json], **keywords: Any) -> None:
    place(document).update(keywords)


def root(document: Json) -> Json:
    return document


def item(document: Json) -> Json:
    found: Json
    (found,) = document["paths"].values()
    return found


def form(document: Json, media_type: str, encoding: Json, **properties: Json) -> None:
    content = {"schema": {"type": "object", "properties": properties}, "encoding": encoding}
    operation(document)["requestBody"]["content"] = {media_type: content}


def secured(document: Json, scheme: Json = KEY, **more: Any) -> None:
    schemes = {"first": scheme, **more}
    if "swagger" in document:
        document["securityDefinitions"] = schemes
    else:
        document["components"] = {"securitySchemes": schemes}


def base(version: str) -> Json:
    """Return a document of a version whose operation ``op`` has two parameters and a body."""
    of = (lambda kind: {"type": kind}) if version == "2.0" else (lambda kind: {"schema": {}})
    parameters: list[Json] = [
        {"name": "id", "in": "path", "required": True, **of("string")},
        {"name": "q", "in": "query", **of("string")},
    ]
    written: Json = {"operationId": "op", "parameters": parameters, "responses": {}}
    if version == "2.0":
        parameters.append({"name": "body", "in": "body", "schema": {"type": "object"}})
    else:
        content = {"application/json": {"schema": {"type": "object"}}}
        written["requestBody"] = {"content": content}
    key = "swagger" if version == "2.0" else "openapi"
    return {
        key: version if version == "2.0" else f"{version}.0",
        "info": {"title": "test", "version": "1"},
        "paths": {"/echo/{id}": {"post": written}},
    }


def moved(document: Json, place: str, name: str, value: Any) -> None:
    """Make a parameter of an operation a shared one, which a reference names."""
    operation(document)["parameters"][1] = {"$ref": f"#/{place}{name}"}
    holder = document
    for step in place.strip("/").split("/"):
        holder = holder.setdefault(step, {})
    holder[name] = value


Q = {"name": "p", "in": "query", "type": "string"}
PIPES = {"style": "pipeDelimited", "explode": False}
DEEP = {"style": "deepObject", "explode": True}
TWO = {"q": ["a", "b,c"]}
FILE = {"base64": "aGk=", "filename": "f.bin"}


def in_form(**fields: Any) -> Json:
    return {"body": fields}


CASES: dict[str, list[Case]] = {
    "Document.swagger": [Case(lambda d, _: put(d, root, swagger="1.2"), refused="swagger '1.2'")],
    "Document.openapi": [Case(lambda d, _: put(d, root, openapi="4.0"), refused="openapi '4.0'")],
    "Document.host": [
        Case(lambda d, api: put(d, root, host=urlsplit(api).netloc), PLAIN, own_address=True)
    ],
    "Document.basePath": [
        Case(
            lambda d, api: put(d, root, host=urlsplit(api).netloc, basePath="/v1"),
            {"target": "/v1/echo/7?q=a"},
            own_address=True,
        )
    ],
    "Document.schemes": [
        Case(
            lambda d, api: put(d, root, host=urlsplit(api).netloc, schemes=["ws"]),
            refused="it does not say where the API is",
            own_address=True,
        )
    ],
    "Document.consumes": [
        Case(
            lambda d, _: put(d, root, consumes=["application/xml"]),
            {"body": "<a/>"},
            {"body": "<a/>"},
            {"content-type": "application/xml"},
        ),
        Case(
            lambda d, _: put(d, root, consumes=[FORM]),
            {"body": "a=1"},
            headers={"content-type": FORM},
        ),
    ],
    "Document.produces": [
        Case(
            lambda d, _: put(d, root, produces=["text/csv"]),
            PLAIN,
            {},
            {"accept": "text/csv, */*;q=0.1"},
        )
    ],
    "Document.servers": [
        Case(
            lambda d, api: put(d, root, servers=[{"url": f"{api}/v1"}]),
            {"target": "/v1/echo/7?q=a"},
            own_address=True,
        )
    ],
    "Document.paths": [
        Case(lambda d, _: put(d, root, paths={"/other/{id}": item(d)}), {"target": "/other/7?q=a"})
    ],
    "Document.security": [
        Case(
            lambda d, _: (secured(d, other=IN_QUERY), put(d, root, security=[{"other": []}])),
            {"target": "/echo/7?q=a&key=k"},
            key="k",
        )
    ],
    "Document.securityDefinitions": [
        Case(lambda d, _: secured(d), PLAIN, {}, {"x-key": "k"}, key="k")
    ],
    "Document.components": [Case(lambda d, _: secured(d), PLAIN, {}, {"x-key": "k"}, key="k")],
    "Document.definitions": [
        Case(
            lambda d, _: (
                put(d, root, definitions={"A": {"properties": {"a": {"readOnly": True}}}}),
                schema(d).update({"$ref": "#/definitions/A"}),
            ),
            PLAIN,
        )
    ],
    "Document.parameters": [
        Case(
            lambda d, _: moved(d, "parameters/", "P", Q),
            {"target": "/echo/7?p=a"},
            {"q": None, "p": "a"},
        )
    ],
    "Server.url": [
        Case(
            lambda d, _: put(d, root, servers=[{"url": "https://{a}.example"}]),
            refused="has a variable without a default",
            own_address=True,
        )
    ],
    "Server.variables": [
        Case(
            lambda d, api: put(
                d, root, servers=[{"url": f"{api}/{{v}}", "variables": {"v": {"default": "v2"}}}]
            ),
            {"target": "/v2/echo/7?q=a"},
            own_address=True,
        )
    ],
    "Path item.$ref": [
        Case(
            lambda d, _: put(
                d,
                root,
                paths={
                    "/echo/{id}": {"$ref": "#/x-items/one", "parameters": [_named(d, "p")]},
                },
                **{"x-items": {"one": item(d)}},
            ),
            {"target": "/echo/7?p=1&q=a"},
            {"p": "1"},
        )
    ],
    "Path item.parameters": [
        Case(
            lambda d, _: put(d, item, parameters=[_named(d, "p")]),
            {"target": "/echo/7?p=1&q=a"},
            {"p": "1"},
        )
    ],
    "Path item.servers": [
        Case(
            lambda d, api: put(d, item, servers=[{"url": f"{api}/path"}]),
            {"target": "/path/echo/7?q=a"},
            own_address=True,
        )
    ],
    "Operation.parameters": [
        Case(
            lambda d, _: operation(d)["parameters"].append(_named(d, "p")),
            {"target": "/echo/7?q=a&p=1"},
            {"p": "1"},
        )
    ],
    "Operation.requestBody": [Case(lambda d, _: None, {"json": {"a": 2}}, {"body": {"a": 2}})],
    "Operation.consumes": [
        Case(
            lambda d, _: (
                put(d, root, consumes=[FORM]),
                put(d, operation, consumes=["text/plain"]),
            ),
            {"body": "x"},
            {"body": "x"},
            {"content-type": "text/plain"},
        )
    ],
    "Operation.produces": [
        Case(
            lambda d, _: put(d, operation, produces=["text/csv"]),
            PLAIN,
            {},
            {"accept": "text/csv, */*;q=0.1"},
        )
    ],
    "Operation.schemes": [
        Case(
            lambda d, api: (
                put(d, root, host=urlsplit(api).netloc, schemes=["https"]),
                put(d, operation, schemes=["http"]),
            ),
            PLAIN,
            own_address=True,
        )
    ],
    "Operation.servers": [
        Case(
            lambda d, api: (
                put(d, item, servers=[{"url": "http://path.invalid"}]),
                put(d, operation, servers=[{"url": f"{api}/own"}]),
            ),
            {"target": "/own/echo/7?q=a"},
            own_address=True,
        )
    ],
    "Operation.security": [
        Case(
            lambda d, _: (secured(d, other=IN_QUERY), put(d, operation, security=[{"other": []}])),
            {"target": "/echo/7?q=a&key=k"},
            key="k",
        ),
        Case(
            lambda d, _: (secured(d), put(d, operation, security=[])),
            PLAIN,
            headers={"x-key": None},
            key="k",
        ),
    ],
    "Operation.responses": [
        Case(
            lambda d, _: put(d, operation, responses={"200": {"content": {"text/csv": {}}}}),
            PLAIN,
            {},
            {"accept": "text/csv, */*;q=0.1"},
        )
    ],
    "Parameter.name": [
        Case(
            lambda d, _: put(d, parameter, name="a b[]"),
            {"target": "/echo/7?a%20b%5B%5D=1"},
            {"q": None, "a b[]": "1"},
        )
    ],
    "Parameter.in": [
        Case(
            lambda d, _: put(d, parameter, **{"in": "header"}),
            {"target": "/echo/7"},
            {},
            {"q": "a"},
        ),
        Case(lambda d, _: put(d, parameter, **{"in": "nowhere"}), refused="a parameter needs 'in'"),
    ],
    "Parameter.required": [
        Case(
            lambda d, _: put(d, parameter, required=True),
            {},
            {"q": None},
            refused="'q' is required",
        )
    ],
    "Parameter.style": [
        Case(lambda d, _: put(d, parameter, **PIPES), {"target": "/echo/7?q=a%7Cb%2Cc"}, TWO),
        Case(
            lambda d, _: put(d, parameter, style="spaceDelimited", explode=False),
            {"target": "/echo/7?q=a%20b%2Cc"},
            TWO,
        ),
        Case(
            lambda d, _: put(d, parameter, **DEEP),
            {"target": "/echo/7?q%5Bk%5D=1"},
            {"q": {"k": 1}},
        ),
        Case(lambda d, _: put(d, _id, style="label"), {"target": "/echo/.7?q=a"}),
        Case(lambda d, _: put(d, _id, style="matrix"), {"target": "/echo/;id=7?q=a"}),
        Case(
            lambda d, _: put(d, parameter, style="matrix"), refused="the style 'matrix' is not one"
        ),
        Case(lambda d, _: put(d, parameter, style="xml"), refused="the style 'xml' is not one"),
        Case(
            lambda d, _: put(d, parameter, **{"in": "header"}, style="form"),
            refused="the style 'form' is not one for 'header', which has simple",
        ),
    ],
    "Parameter.explode": [
        Case(lambda d, _: put(d, parameter, explode=False), {"target": "/echo/7?q=a,b%2Cc"}, TWO),
        Case(
            lambda d, _: put(d, _id, style="matrix", explode=True),
            {"target": "/echo/;id=1;id=2?q=a"},
            {"id": [1, 2]},
        ),
        Case(
            lambda d, _: put(d, _id, style="label", explode=True),
            {"target": "/echo/.R=1.G=2?q=a"},
            {"id": {"R": 1, "G": 2}},
        ),
    ],
    "Parameter.allowReserved": [
        Case(
            lambda d, _: put(d, parameter, allowReserved=True),
            {"target": "/echo/7?q=a/b?c:d@e!$'()*,;=%41%20%23%26%2B"},
            {"q": "a/b?c:d@e!$'()*,;=%41 #&+"},
        )
    ],
    "Parameter.content": [
        Case(
            lambda d, _: (
                parameter(d).pop("schema"),
                put(d, parameter, content={"application/json": {}}),
            ),
            {"target": "/echo/7?q=%7B%22k%22%3A%5B1%5D%7D"},
            {"q": {"k": [1]}},
        ),
        Case(
            lambda d, _: (parameter(d).pop("schema"), put(d, parameter, content={"text/xml": {}})),
            {"target": "/echo/7?q=%3Ca%2F%3E"},
            {"q": "<a/>"},
        ),
    ],
    "Parameter.collectionFormat": [
        *(
            Case(
                lambda d, _, name=name: put(d, parameter, type="array", collectionFormat=name),
                {"target": f"/echo/7?q={written}"},
                {"q": ["a", "b"]},
            )
            for name, written in {
                "csv": "a,b",
                "ssv": "a%20b",
                "tsv": "a%09b",
                "pipes": "a%7Cb",
                "multi": "a&q=b",
            }.items()
        ),
        Case(
            lambda d, _: put(d, _id, type="array", collectionFormat="multi"),
            refused="only a query and a form repeat a name",
        ),
        Case(
            lambda d, _: put(d, parameter, type="array", collectionFormat="dots"),
            refused="the collectionFormat 'dots' cannot be used",
        ),
    ],
    "Parameter.items": [
        Case(
            lambda d, _: put(
                d,
                parameter,
                type="array",
                collectionFormat="multi",
                items={"type": "array", "collectionFormat": "pipes", "items": {"type": "string"}},
            ),
            {"target": "/echo/7?q=a%7Cb&q=c"},
            {"q": [["a", "b"], ["c"]]},
        ),
        Case(
            lambda d, _: put(d, parameter, type="array", items={"type": "array", "items": {}}),
            {"target": "/echo/7?q=1,2,3"},
            {"q": [[1, 2], [3]]},
        ),
    ],
    "Parameter.type": [
        Case(
            lambda d, _: operation(d).update(
                parameters=[
                    parameter(d, "id"),
                    {"name": "f", "in": "formData", "type": "file"},
                ]
            ),
            {"parts": [["f", ["f.bin", "application/octet-stream", "hi"]]]},
            {"q": None, "body": None, "f": FILE},
        )
    ],
    "Request body.content": [
        Case(
            lambda d, _: put(d, _body, content={"application/xml": {}}),
            {"body": "<a/>"},
            {"body": "<a/>"},
            {"content-type": "application/xml"},
        ),
        Case(
            lambda d, _: put(d, _body, content={"multipart/mixed": {}}),
            given={"body": FILE},
            refused="Give its 'media_type' with the boundary",
        ),
    ],
    "Request body.required": [
        Case(
            lambda d, _: put(d, _body, required=True),
            {},
            {"body": None},
            refused="'body' is required",
        )
    ],
    "Media type.schema": [
        Case(
            lambda d, _: form(d, MULTIPART, {}, f={"type": "string", "format": "binary"}),
            {"parts": [["f", ["f.bin", "application/octet-stream", "hi"]]]},
            in_form(f=FILE),
        )
    ],
    "Media type.encoding": [
        Case(
            lambda d, _: form(d, FORM, {"metadata": {"style": "deepObject"}}),
            {"body": "metadata%5Bk%5D=v"},
            in_form(metadata={"k": "v"}),
        )
    ],
    "Encoding.contentType": [
        Case(
            lambda d, _: form(
                d, MULTIPART, {"f": {"contentType": "image/png"}}, f={"format": "binary"}
            ),
            {"parts": [["f", ["f.bin", "image/png", "hi"]]]},
            in_form(f=FILE),
        ),
        Case(
            lambda d, _: form(d, FORM, {"f": {"contentType": "application/json"}}),
            {"body": "f=%5B1%2C2%5D"},
            in_form(f=[1, 2]),
        ),
        Case(
            lambda d, _: form(d, FORM, {"f": {"contentType": "application/xml"}}),
            given=in_form(f={"a": 1}),
            refused="Argument 'f' is sent as application/xml: give it as text.",
        ),
        Case(
            lambda d, _: form(d, MULTIPART, {"f": {"contentType": "nothing"}}),
            refused="'nothing' is not a media type",
        ),
    ],
    "Encoding.style": [
        Case(
            lambda d, _: form(d, FORM, {"expand": {"style": "deepObject"}}),
            {"body": "expand%5B0%5D=a&expand%5B1%5D=b"},
            in_form(expand=["a", "b"]),
        ),
        Case(lambda d, _: form(d, FORM, {"f": PIPES}), {"body": "f=a%7Cb"}, in_form(f=["a", "b"])),
        Case(lambda d, _: form(d, FORM, {"f": {"style": "label"}}), refused="the style 'label' is"),
    ],
    "Encoding.explode": [
        Case(
            lambda d, _: form(d, FORM, {"f": {"explode": False}}),
            {"body": "f=a,b"},
            in_form(f=["a", "b"]),
        ),
        Case(
            lambda d, _: form(d, FORM, {"f": {"explode": True}}),
            {"body": "k=1&l=2"},
            in_form(f={"k": 1, "l": 2}),
        ),
    ],
    "Encoding.allowReserved": [
        Case(
            lambda d, _: form(d, FORM, {"f": {"allowReserved": True}}),
            {"body": "f=a/b:c"},
            in_form(f="a/b:c"),
        )
    ],
    "Encoding.headers": [
        Case(
            lambda d, _: form(d, MULTIPART, {"f": {"headers": {"X-A": {"required": True}}}}),
            refused="the part needs a header 'X-A'",
        )
    ],
    "Schema.readOnly": [
        Case(
            lambda d, _: (
                parameter(d, "body").update(required=True)
                if "swagger" in d
                else _body(d).update(required=True),
                schema(d).update(
                    required=["id"], allOf=[{"properties": {"id": {"readOnly": True}}}]
                ),
            ),
            PLAIN,
        )
    ],
    "Schema.format": [
        Case(
            lambda d, _: form(d, MULTIPART, {}, f={"type": "string", "format": "binary"}),
            {"parts": [["f", ["f", "application/octet-stream", "hi"]]]},
            in_form(f="aGk="),
        )
    ],
    "Schema.contentEncoding": [
        Case(
            lambda d, _: put(
                d, _body, content={"image/png": {"schema": {"contentEncoding": "base64"}}}
            ),
            {"body": "aGk="},
            {"body": "aGk="},
        )
    ],
    "Schema.contentMediaType": [
        Case(
            lambda d, _: form(d, MULTIPART, {}, f={"contentMediaType": "image/png"}),
            {"parts": [["f", ["f.bin", "application/octet-stream", "hi"]]]},
            in_form(f=FILE),
        )
    ],
    "Security scheme.type": [
        Case(
            lambda d, _: secured(d, {"type": "basic"}),
            refused="does not say how the API key",
            key="k",
        )
    ],
    "Security scheme.in": [
        Case(lambda d, _: secured(d, IN_QUERY), {"target": "/echo/7?q=a&key=k"}, key="k")
    ],
    "Security scheme.name": [
        Case(lambda d, _: secured(d, {**KEY, "name": "X-Own"}), PLAIN, {}, {"x-own": "k"}, key="k")
    ],
}
# Keywords without effect: their place, and a value.
WITHOUT: dict[str, tuple[Callable[[Json], Json], Any]] = {
    "Document.responses": (root, {"R": {"description": ""}}),
    "Document.info": (root, {"title": "other", "version": "2"}),
    "Document.webhooks": (root, {"hook": {"post": {"responses": {}}}}),
    "Document.jsonSchemaDialect": (root, "https://json-schema.org/draft/2020-12/schema"),
    "Operation.callbacks": (operation, {"c": {"http://a.invalid": {"post": {}}}}),
    "Operation.operationId": (operation, "op"),
    "Operation.responses": (operation, {"200": {"description": "", "schema": {}}}),
    "Parameter.schema": (parameter, {"type": "string", "maxLength": 9}),
    "Parameter.allowEmptyValue": (parameter, True),
    "Parameter.format": (parameter, "uuid"),
    "Schema.$ref": (schema, "#/nowhere"),
    "Schema.default": (schema, {"b": 2}),
    "Schema.discriminator": (schema, {"propertyName": "a"}),
    "Schema.xml": (schema, {"name": "x"}),
    "Schema.writeOnly": (schema, True),
    "Schema.externalDocs": (schema, {"url": "http://a.invalid"}),
}
PLACES: dict[str, Callable[[Json], Json]] = {
    "Document": root,
    "Operation": operation,
    "Path item": item,
    "Parameter": parameter,
    "Media type": media,
    "Schema": schema,
    "Request body": lambda document: _body(document),
    "Server": lambda document: document.setdefault("servers", [{"url": "http://a.invalid"}])[0],
    "Security scheme": lambda document: _scheme(document),
}
VALUES = {"tags": ["a"], "externalDocs": {"url": "http://a.invalid"}, "deprecated": True}


def _named(document: Json, name: str) -> Json:
    return {**parameter(document), "name": name}


def _id(document: Json) -> Json:
    return parameter(document, "id")


def _body(document: Json) -> Json:
    found: Json = operation(document)["requestBody"]
    return found


def _scheme(document: Json) -> Json:
    secured(document, dict(KEY))
    found: Json
    if "swagger" in document:
        found = document["securityDefinitions"]["first"]
    else:
        found = document["components"]["securitySchemes"]["first"]
    return found
