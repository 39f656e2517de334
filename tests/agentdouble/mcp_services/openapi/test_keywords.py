"""Each keyword of the three formats: what it does to a request, on the wire.

The page ``emulator/docs/definitions.md`` says it, the formats' official schemas list the keywords, and
a server that echoes shows the request. A keyword without effect leaves the request as it is.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import openapi_spec_validator
import pytest

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services import openapi
from agentdouble.mcp_services.openapi.keywords import KEYWORDS
from tests.agentdouble.mcp_services.openapi.calling import Json, capture, refused
from tests.agentdouble.mcp_services.openapi.keyword_cases import (
    CASES,
    DEEP,
    MULTIPART,
    PLACES,
    PLAIN,
    VALUES,
    WITHOUT,
    Case,
    base,
    form,
    put,
)

PAGE = Path(__file__).parents[4] / "emulator" / "docs" / "definitions.md"
ROW = re.compile(r"\| ([A-Z][\w ]+) \| `([^`]+)` \| ([\d. ]+) \| (Used|Refused|No effect) \|")
VERSIONS = ("2.0", "3.0", "3.1")
GIVEN = {"id": "7", "q": "a", "body": {"a": 1}}

# The objects of the formats' official schemas, and their names on the page. Those with None have no
# effect as a whole, or only list keywords of JSON Schema.
OBJECTS: dict[str, str | None] = {
    "root": "Document",
    **dict.fromkeys(("operation", "Operation"), "Operation"),
    **dict.fromkeys(("pathItem", "PathItem", "path-item"), "Path item"),
    **dict.fromkeys(("Server", "server"), "Server"),
    **dict.fromkeys(("Parameter", "parameter", "bodyParameter"), "Parameter"),
    **dict.fromkeys(("queryParameterSubSchema", "headerParameterSubSchema"), "Parameter"),
    **dict.fromkeys(("pathParameterSubSchema", "formDataParameterSubSchema"), "Parameter"),
    **dict.fromkeys(("RequestBody", "request-body"), "Request body"),
    **dict.fromkeys(("MediaType", "media-type"), "Media type"),
    **dict.fromkeys(("Encoding", "encoding"), "Encoding"),
    **dict.fromkeys(("schema", "Schema", "fileSchema"), "Schema"),
    **dict.fromkeys(("apiKeySecurity", "basicAuthenticationSecurity"), "Security scheme"),
    **dict.fromkeys(("oauth2ImplicitSecurity", "oauth2PasswordSecurity"), "Security scheme"),
    **dict.fromkeys(("oauth2ApplicationSecurity",), "Security scheme"),
    **dict.fromkeys(("oauth2AccessCodeSecurity",), "Security scheme"),
    **dict.fromkeys(("APIKeySecurityScheme", "HTTPSecurityScheme"), "Security scheme"),
    **dict.fromkeys(("OAuth2SecurityScheme", "OpenIdConnectSecurityScheme"), "Security scheme"),
    "security-scheme": "Security scheme",
    **dict.fromkeys(("info", "Info", "contact", "Contact", "license", "License", "tag", "Tag")),
    **dict.fromkeys(("externalDocs", "ExternalDocumentation", "external-documentation")),
    **dict.fromkeys(("response", "Response", "responses", "Responses", "header", "Header")),
    **dict.fromkeys(("Example", "example", "examples", "Link", "link", "xml", "XML")),
    **dict.fromkeys(("Discriminator", "ServerVariable", "server-variable", "jsonReference")),
    **dict.fromkeys(("Components", "components", "reference", "primitivesItems")),
    **dict.fromkeys(("OAuthFlows", "oauth-flows", "ImplicitOAuthFlow", "PasswordOAuthFlow")),
    **dict.fromkeys(("ClientCredentialsFlow", "AuthorizationCodeOAuthFlow")),
}
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
# These are in the argument's schema: test_schemas.py.
JSON_SCHEMA = {
    *("additionalProperties", "allOf", "anyOf", "deprecated", "description", "enum", "example"),
    *("exclusiveMaximum", "exclusiveMinimum", "items", "maxItems", "maxLength", "maxProperties"),
    *("maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "not"),
    *("nullable", "oneOf", "pattern", "properties", "required", "title", "type", "uniqueItems"),
    *("default", "format"),
}


def rows() -> list[tuple[str, str, str, str]]:
    """Return object, keyword, version and effect of each row of the page."""
    found = ROW.findall(PAGE.read_text("utf-8"))
    return [
        (thing, keyword, version, effect)
        for thing, keyword, versions, effect in found
        for version in versions.split()
    ]


def cases() -> list[tuple[str, str, Case]]:
    """Return name, version and case of each row."""
    found = []
    for thing, keyword, version, effect in rows():
        name = f"{thing}.{keyword}"
        if effect != "No effect":
            found += [(name, version, case) for case in CASES[name]]
            continue
        place, value = WITHOUT.get(name, (PLACES[thing], VALUES.get(keyword, "other")))
        change = _putting(place, keyword, value)
        found.append((name, version, Case(change, PLAIN)))
    return found


def _putting(
    place: Callable[[Json], Json], keyword: str, value: Any
) -> Callable[[Json, str], None]:
    return lambda document, _api: put(document, place, **{keyword: value})


@pytest.mark.parametrize(
    ("name", "version", "case"), cases(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_keyword_does_what_the_page_says(api: str, name: str, version: str, case: Case) -> None:
    """It is in the request, refused, or the request is the same with it."""
    document = copy.deepcopy(base(version))
    case.change(document, api)
    given = {key: value for key, value in {**GIVEN, **case.given}.items() if value is not None}
    options: Json = {"auth": openapi.ApiKey(case.key)} if case.key else {}
    base_url = None if case.own_address else api
    if case.refused:
        assert case.refused in refusal(document, base_url, given, options)
        return

    request = capture(document, base_url, given, **options)  # type: ignore[arg-type]

    assert case.expected == {key: request.get(key) for key in case.expected}
    assert case.headers == {key: request["headers"].get(key) for key in case.headers}


def refusal(document: Json, base_url: str | None, given: Json, options: Json) -> str:
    """Return why a service cannot be made, or its tool not be called."""
    try:
        return refused(document, base_url, given, **options)
    except DefinitionError as error:
        return str(error)


def official(version: str) -> dict[str, set[str]]:
    """Return the keywords of a format by object, from its official schema."""
    file = resources.files(openapi_spec_validator) / f"resources/schemas/v{version}/schema.json"
    document = json.loads(file.read_text("utf-8"))
    objects = document.get("definitions") or document["$defs"]
    found = {
        name: set(written.get("properties", ())) | _conditional(written)
        for name, written in {"root": document, **objects}.items()
    }
    return {name: keywords for name, keywords in found.items() if keywords}


def _conditional(written: Any) -> set[str]:
    """Return the keywords that a schema has in its dependentSchemas."""
    members = written.get("dependentSchemas", {}).values() if isinstance(written, dict) else ()
    return {keyword for member in members for keyword in member.get("properties", ())}


@pytest.mark.parametrize("version", VERSIONS)
def test_page_has_every_keyword(version: str) -> None:
    """As the format's official schema lists them."""
    documented = {(thing, keyword) for thing, keyword, each, _ in rows() if each == version}
    missing = []
    for name, keywords in official(version).items():
        thing = OBJECTS[name]
        if thing is None:
            continue
        ignored = METHODS if thing == "Path item" else JSON_SCHEMA if thing == "Schema" else set()
        if thing == "Parameter" and version == "2.0":
            ignored = JSON_SCHEMA - {"type", "items", "format", "description", "required"}
        missing += [
            f"{thing}.{keyword}"
            for keyword in keywords - ignored
            if (thing, keyword) not in documented
        ]

    assert [] == sorted(set(missing))


@pytest.mark.parametrize("version", VERSIONS)
def test_no_keyword_of_the_format_is_a_warning(version: str) -> None:
    """Warnings are about keywords that the official schema does not have."""
    unknown = {
        (name, keyword)
        for name, written in official(version).items()
        for keyword in written
        if keyword not in KEYWORDS[version].get((OBJECTS[name] or "").lower(), written)
    }

    assert set() == unknown


@pytest.mark.parametrize(
    ("version", "parts"),
    [("3.0", [["f", '{"k":1}']]), ("3.1", [["f[k]", "1"]])],
)
def test_style_in_a_multipart_form_is_one_of_3_1(
    api: str, version: str, parts: list[list[str]]
) -> None:
    """3.0: it "SHALL be ignored" there."""
    document = base(version)
    form(document, MULTIPART, {"f": DEEP})

    assert parts == capture(document, api, {"id": "7", "body": {"f": {"k": 1}}})["parts"]


def test_each_row_has_a_case() -> None:
    """And each case a row."""
    used = {f"{thing}.{keyword}" for thing, keyword, _, effect in rows() if effect != "No effect"}

    assert CASES.keys() == used
