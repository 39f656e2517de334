"""The styles of OpenAPI 3: which there are in each place, and how a parameter or a field has one."""

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


def styled(node: Json, where: str, location: str) -> Style:
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
