"""What a request in Gemini's form demands of an answer, read from its configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentdouble.errors import ModelError
from agentdouble.model import conversation, fields
from agentdouble.model.conversation import Body
from agentdouble.model.demands import Demands, OutputFormat

_MOST_STOPS = 5
_MOST_LIKELY = 20
_JSON, _ENUM = "application/json", "text/x.enum"
_MIME_TYPES = ("text/plain", _JSON, _ENUM)
_NUMBERS = frozenset(  # protobuf's JSON has numbers of 64 bits as text
    {"maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"}
)


def declared(body: Body) -> tuple[str, ...]:
    """Return the names of the functions that a request declares.

    Raises ModelError for another kind of tool, for example one that the vendor runs.
    """
    names = []
    for index, tool in enumerate(conversation.objects(body.get("tools"), "tools")):
        for kind, value in tool.items():
            place = f"tools[{index}].{fields.camel(kind)}"
            if fields.camel(kind) not in fields.TOOLS["generateContent"]:
                raise ModelError(
                    f"{place} is not supported, only functionDeclarations: {fields.BUILT_IN}",
                    code="unsupported_parameter",
                )
            functions = conversation.objects(value, place)
            names += [conversation.field(function, "name", str, place) for function in functions]
    return tuple(names)


def demands(body: Body, tools: Sequence[str]) -> Demands:
    """Return what a request demands. Raise ModelError for a field that is malformed."""
    config = _object(body, "generationConfig")
    tool_config = _object(body, "toolConfig")
    calling = _object(tool_config, "functionCallingConfig")
    must_call, allowed = _calling(calling, tools)
    numbers = {name: fields.get(config, name) for name in ("maxOutputTokens", "logprobs")}
    logprobs = conversation.integer(numbers, "logprobs", 0, _MOST_LIKELY)
    reports = conversation.flag({"": fields.get(config, "responseLogprobs")}, "")
    if logprobs is not None and not reports:
        raise ModelError("generationConfig.logprobs needs responseLogprobs true.")
    return Demands(
        choice=f"functionCallingConfig {json.dumps(calling, ensure_ascii=False):.200}",
        allowed=allowed,
        must_call=must_call,
        output=_output(config),
        stop=conversation.strings(
            fields.get(config, "stopSequences"), _MOST_STOPS, "generationConfig.stopSequences"
        ),
        limit=conversation.integer(numbers, "maxOutputTokens", 1),
        logprobs=(logprobs or 0) if reports else None,
        cuts_calls=False,
    )


def _object(document: Body, name: str) -> Body:
    value = fields.get(document, name)
    if value is not None and not isinstance(value, dict):
        raise ModelError(f"{name} must be an object, not {value!r:.80}.")
    return value or {}


def _calling(calling: Body, tools: Sequence[str]) -> tuple[bool, frozenset[str] | None]:
    """Return whether a function must be called, and which may be; None is all."""
    mode = fields.get(calling, "mode") or "AUTO"
    place = "toolConfig.functionCallingConfig"
    names = conversation.strings(
        fields.get(calling, "allowedFunctionNames"), None, f"{place}.allowedFunctionNames"
    )
    if mode == "NONE":
        return False, frozenset()
    if mode not in ("ANY", "AUTO", "MODE_UNSPECIFIED", "VALIDATED"):
        raise ModelError(f"{place}.mode must be AUTO, ANY, VALIDATED or NONE, not {mode!r:.60}.")
    unknown = [name for name in names if name not in tools]
    if unknown:
        raise ModelError(
            f"{place}.allowedFunctionNames has {unknown[0]!r:.80}, which no tool declares; "
            f"declared are {', '.join(tools) or 'none'}."
        )
    if names and mode not in ("ANY", "VALIDATED"):
        raise ModelError(f"{place}.allowedFunctionNames needs the mode ANY or VALIDATED.")
    if mode == "ANY" and not tools:
        raise ModelError(f"{place}.mode ANY needs a function in tools.")
    return mode == "ANY", frozenset(names) if names else None


def _output(config: Body) -> OutputFormat | None:
    kind = fields.get(config, "responseMimeType") or "text/plain"
    schema = fields.get(config, "responseSchema")
    json_schema = fields.get(config, "responseJsonSchema")
    if kind not in _MIME_TYPES:
        raise ModelError(
            f"generationConfig.responseMimeType must be one of {', '.join(_MIME_TYPES)}, "
            f"not {kind!r:.60}."
        )
    if schema is not None and json_schema is not None:
        raise ModelError("responseSchema and responseJsonSchema exclude each other.")
    if kind == "text/plain":
        if schema is not None or json_schema is not None:
            raise ModelError(f"A schema of the response needs the responseMimeType {_JSON}.")
        return None
    field = "responseJsonSchema" if schema is None else "responseSchema"
    found = json_schema if schema is None else _json_schema(schema)
    if found is None:  # any JSON, also what is no object
        field, found = "responseMimeType", {}
    return OutputFormat(f"generationConfig.{field}", found, is_plain=kind == _ENUM)


def _json_schema(schema: Any) -> Any:
    """Return a schema of Gemini's, a part of OpenAPI's, as a JSON schema."""
    if isinstance(schema, list):
        return [_json_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for name, value in schema.items():
        key = fields.camel(name)
        if key == "type" and isinstance(value, str):
            made["type"] = value.lower()
        elif key == "properties" and isinstance(value, Mapping):
            made[key] = {child: _json_schema(inner) for child, inner in value.items()}
        elif key in _NUMBERS and isinstance(value, str) and value.isdecimal():
            made[key] = int(value)
        elif key in ("items", "anyOf", "additionalProperties"):
            made[key] = _json_schema(value)
        elif key in ("ref", "defs"):
            made[f"${key}"] = _json_schema(value)
        elif key not in ("nullable", "propertyOrdering", "example"):
            made[key] = value
    if schema.get("nullable") is True:
        return {"anyOf": [made, {"type": "null"}]}
    return made
