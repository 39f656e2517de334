"""The styles of OpenAPI 3, which depend on the place of a value."""

from __future__ import annotations

from typing import Any

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.openapi.definition import Json, Style, boolean, step

_DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}
_STYLES = {  # the first is the default
    "path": ("simple", "label", "matrix"),
    "query": ("form", "deepObject", *_DELIMITERS),
    "header": ("simple",),
    "cookie": ("form",),
}


def style_of(node: Json, where: str, location: str) -> Style:
    """Return how a parameter or a form field is written; raise DefinitionError."""
    styles = _STYLES.get(where, ("simple",))
    name: Any = node.get("style", styles[0])
    if name not in styles:
        raise DefinitionError(
            f"the style {name!r} is not one for {where!r}, which has {', '.join(styles)}",
            location=step(location, "style"),
        )
    explode = boolean(node["explode"]) if "explode" in node else name == "form"
    # 'allowReserved' "only applies to parameters with an in value of query", and to forms
    reserved = where == "query" and boolean(node.get("allowReserved"))
    if name in _DELIMITERS:
        return Style("form", explode, _DELIMITERS[name], reserved=reserved)
    return Style(name, explode, reserved=reserved)
