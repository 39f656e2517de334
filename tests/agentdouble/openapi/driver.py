"""A client that validates every answer of a double against its OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
from jsonschema import Draft202012Validator

from agentdouble import Emulator
from tests.agentdouble.calling import DataPlane, http, send, signed

VERSION = "2025-10-30"


def document_of(double: Emulator) -> dict[str, Any]:
    answer = http.get(f"{double.url}/openapi.json")
    assert 200 == answer.status_code, answer.text
    body: dict[str, Any] = answer.json()
    return body


def operations_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the method, the path and the operation of each operation."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


class Driver:
    """Calls a double; ``driven`` are the operations that have succeeded."""

    def __init__(self, double: Emulator, document: dict[str, Any]) -> None:
        self.double = double
        self.driven: set[str] = set()
        self._document = document
        self._closed = _closed(document["components"])
        operations = list(operations_of(document))
        # the narrowest path first, as a parameter may be several segments
        self._operations = sorted(operations, key=_width)

    def act(self, action: str, **body: Any) -> dict[str, Any]:
        """Call an action and return its Result, or an empty one if it is refused."""
        answer = send(signed(self.double, body, action=action))
        operation = self._document["paths"][f"/?Action={action}&Version={VERSION}"]["post"]
        self._check(operation, answer)
        result: dict[str, Any] = answer.json().get("Result", {})
        return result

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request to an operation of the document."""
        answer = http.request(method, self.double.url + path, **options)
        self._check(self._find(method, path), answer)
        return answer

    def plane(self, plane: DataPlane, method: str, path: str, **options: Any) -> httpx.Response:
        """Call the data plane of a session."""
        query = {**plane.query, **options.pop("params", {})}
        return self.ask(method, path, params=query, **options)

    def _find(self, method: str, path: str) -> dict[str, Any]:
        route = urlsplit(path).path
        for methods, template, operation in self._operations:
            pattern = re.sub(r"\\\{\w+\\\}", ".+", re.escape(template))
            if methods == method.lower() and re.fullmatch(pattern, route):
                return operation
        raise AssertionError(f"The document has no {method} {route}.")

    def _check(self, operation: Mapping[str, Any], answer: httpx.Response) -> None:
        name, responses = operation["operationId"], operation["responses"]
        context = f"{name}: {answer.status_code} {answer.text[:500]}"
        response = responses.get(str(answer.status_code), responses.get("default"))
        assert response is not None, f"undocumented: {context}"
        if answer.status_code < 400:
            self.driven.add(name)
        content = response.get("content", {})
        kind = answer.headers.get("content-type", "").partition(";")[0]
        if not answer.content:
            return
        assert kind in content or "*/*" in content, f"{kind} is undocumented: {context}"
        if kind == "application/json":
            self._validate(content.get(kind, content.get("*/*"))["schema"], answer.json(), context)

    def _validate(self, schema: Mapping[str, Any], value: Any, context: str) -> None:
        closed = {**_closed(schema), "components": self._closed}
        errors = [problem.message for problem in Draft202012Validator(closed).iter_errors(value)]
        assert [] == errors, f"{errors[0][:500]}: {context}"


def _width(operation: tuple[str, str, Any]) -> tuple[int, int]:
    return -operation[1].count("/"), operation[1].count("{")


def _closed(schema: Any) -> Any:
    """Return a schema in which objects allow only the named fields."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if "properties" in closed and closed.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed
