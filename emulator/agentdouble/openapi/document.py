"""The OpenAPI document (3.1) of operations that are served."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from agentdouble.openapi.operation import Answer, Format, Operation, operation_of
from agentdouble.openapi.schemas import Schemas, parameters_of
from agentdouble.openapi.served import Served

# what the layers in front of the surfaces answer: guard, admission, shutdown, failing, the state
REFUSED = (400, 403, 413, 500, 503, 507)
_PARAMETER = re.compile(r"\{(\w+)\}")


class Document:
    """Collects operations, and makes the document of them; ``keyed`` doubles ask for a key."""

    def __init__(
        self, info: Mapping[str, Any], schemes: Mapping[str, Any], *, keyed: bool = False
    ) -> None:
        self._info = info
        self._schemes = schemes
        self._keyed = keyed
        self._operations: dict[str, dict[str, _Described]] = {}

    def add(self, operations: Iterable[Served], form: Format) -> None:
        """Add operations of one surface; an operation that is there already stays."""
        for one in operations:
            described = _Described(one, operation_of(one.endpoint, one.method), form)
            self._operations.setdefault(one.path, {}).setdefault(one.method.lower(), described)

    def build(self) -> dict[str, Any]:
        """Return the document as JSON-ready data."""
        described = [one for path in self._operations.values() for one in path.values()]
        schemas = Schemas(one for each in described for one in each.types())
        paths = {
            path: {method: self._shown(one, schemas) for method, one in methods.items()}
            for path, methods in self._operations.items()
        }
        used = {one.form.tag: {"name": one.form.tag} for one in described}
        return {
            "openapi": "3.1.0",
            "info": dict(self._info),
            "tags": list(used.values()),
            "paths": paths,
            "components": {"schemas": schemas.named, "securitySchemes": dict(self._schemes)},
        }

    def _shown(self, one: _Described, schemas: Schemas) -> dict[str, Any]:
        shown = one.shown(schemas)
        responses = one.responses(schemas, keyed=self._keyed)
        return {**shown, "responses": responses, "security": self._security(one.form)}

    def _security(self, form: Format) -> Sequence[Mapping[str, Sequence[str]]]:
        names = form.security or (("apiKey",) if self._keyed else ())
        return [{name: ()} for name in names]


class _Described:
    """One operation, with what it says of itself and what its surface says."""

    def __init__(self, one: Served, said: Operation, form: Format) -> None:
        self._served = one
        self._said = said
        self.form = form

    def types(self) -> Iterator[tuple[Any, bool]]:
        """Yield every type, and whether it is one of requests."""
        if self._said.body is not None:
            yield self._said.body, True
        for answer in (*self._said.answers, *self._errors(keyed=True)):
            if answer.type is not None:
                yield answer.type, False

    def shown(self, schemas: Schemas) -> dict[str, Any]:
        """Return the operation without its responses."""
        said, one = self._said, self._served
        summary, description = _sentences(one.endpoint, said)
        shown: dict[str, Any] = {
            "operationId": _id(one),
            "tags": [self.form.tag],
            "summary": summary,
        }
        if description:
            shown["description"] = description
        parameters = [*self._path(), *self._parameters()]
        if parameters:
            shown["parameters"] = parameters
        if said.body is not None:
            content = {said.body_type: {"schema": schemas.of(said.body, request=True)}}
            shown["requestBody"] = {"content": content, "required": not said.optional}
        return shown

    def responses(self, schemas: Schemas, *, keyed: bool) -> dict[str, Any]:
        """Return the responses by status."""
        found: dict[str, list[Answer]] = {}
        for answer in (*self._said.answers, *self._errors(keyed=keyed)):
            found.setdefault(str(answer.status), []).append(answer)
        return {
            status: _response(status, answers, schemas) for status, answers in sorted(found.items())
        }

    def _errors(self, *, keyed: bool) -> Iterator[Answer]:
        said, form = self._said, self.form
        refused = said.refused or form.refused
        error = said.error or form.error or refused
        for status in REFUSED:
            yield Answer(refused, status)
        if keyed:
            yield Answer(refused, 401)
        for one in (*form.errors, *said.errors):
            if isinstance(one, Answer):
                yield one
            elif isinstance(one, int):
                yield Answer(error, one)
            else:
                yield from _answers(one, error)

    def _path(self) -> Iterator[dict[str, Any]]:
        for name in _PARAMETER.findall(self._served.path):
            schema = {"type": "string", "minLength": 1}
            yield {"name": name, "in": "path", "required": True, "schema": schema}

    def _parameters(self) -> Iterator[dict[str, Any]]:
        for of in (self.form, self._said):
            yield from parameters_of(of.query, "query")
            yield from parameters_of(of.headers, "header")


def _response(status: str, answers: Sequence[Answer], schemas: Schemas) -> dict[str, Any]:
    shown: dict[str, Any] = {"description": _description(status, answers)}
    content: dict[str, list[Any]] = {}
    for answer in answers:
        if answer.type is not None:
            content.setdefault(answer.media_type, []).append(schemas.of(answer.type))
    if not content:
        return shown
    return {
        **shown,
        "content": {kind: {"schema": _any_of(some)} for kind, some in content.items()},
    }


def _description(status: str, answers: Sequence[Answer]) -> str:
    if status == "default":
        return "Any other answer"
    codes = sorted({code for answer in answers for code in answer.codes})
    phrase = HTTPStatus(int(status)).phrase
    return f"{phrase}: {', '.join(codes)}" if codes else phrase


def _any_of(schemas: Sequence[Any]) -> Any:
    distinct = [one for index, one in enumerate(schemas) if one not in schemas[:index]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _sentences(endpoint: Any, said: Operation) -> tuple[str, str]:
    """Return the summary and the description: the first line of a docstring, and what follows."""
    text = said.summary or inspect.getdoc(endpoint) or ""
    summary, _, rest = text.partition("\n")
    return summary.replace("``", "`").rstrip("."), rest.strip().replace("``", "`")


def _id(one: Served) -> str:
    """Return the name of an operation for generated clients: the action, or method and path."""
    action = re.search(r"[?&]Action=(\w+)", one.path)
    if action:
        return action[1]
    words = re.findall(r"[A-Za-z0-9]+", one.path) or ["root"]
    end = "_" if one.path.endswith("/") and one.path != "/" else ""
    return "_".join((one.method.lower(), *words)) + end


def _answers(base: type[Exception], error: Any) -> Iterator[Answer]:
    """Yield the answers of a class of errors and of its subclasses."""
    own = base.__dict__
    if isinstance(own.get("status"), int):
        yield Answer(error, own["status"], codes=(own["code"],) if "code" in own else ())
    for one in base.__subclasses__():
        yield from _answers(one, error)
