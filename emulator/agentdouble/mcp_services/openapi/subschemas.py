"""The keywords of JSON Schema 2020-12 whose values contain schemas."""

from __future__ import annotations

ONE = frozenset(  # a schema
    (
        *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    )
)
LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
MAPS = frozenset(("dependentSchemas", "patternProperties", "properties"))
