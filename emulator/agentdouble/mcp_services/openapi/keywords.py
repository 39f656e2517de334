"""The keywords of JSON Schema 2020-12 that are kept, and the values that they may have.

The other keywords of a definition (xml, discriminator, externalDocs, x-...) say nothing about the
JSON of a request. A keyword with an invalid value is left out: with a schema that says less, the
backend still decides, but with an invalid schema no client can call the tool. Patterns are kept as
they are, for clients and backends: a foreign pattern may take for ever, even to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
ONE = frozenset(  # their value is a schema
    (
        *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    )
)
LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
MAPS = frozenset(("dependentSchemas", "patternProperties", "properties"))
# A reference below these applies to the same value, so a circle of references has no end.
IN_PLACE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"))
ANNOTATIONS = frozenset(("title", "description", "default", "deprecated"))


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return _number(value) and value >= 0 and value == int(value)


def _boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _anything(_value: Any) -> bool:
    return True


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _dependent(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _names(names) and len(set(names)) == len(names) for names in value.values()
    )


PLAIN: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("title", "description", "format", "pattern"), _text),
    **dict.fromkeys(("contentMediaType", "contentEncoding"), _text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _count),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _count),
    **dict.fromkeys(("uniqueItems", "deprecated", "writeOnly"), _boolean),
    **dict.fromkeys(("default", "const"), _anything),
    "multipleOf": lambda value: _number(value) and value > 0,
    "enum": lambda value: isinstance(value, list),
    "examples": lambda value: isinstance(value, list),
    "dependentRequired": _dependent,
}
