"""Paths of routes and mounts that take whatever characters a request has.

Starlette's own ``{name:path}``, and the rest of a Mount's path, end at a line feed. A path with
``%0A`` would not reach the surface that it is for, and be answered in another one's format.
"""

from __future__ import annotations

from typing import Any

from starlette.convertors import PathConvertor, register_url_convertor
from starlette.routing import Mount, compile_path
from starlette.types import ASGIApp


class _RestConvertor(PathConvertor):
    regex = "(?s:.*)"


register_url_convertor("rest", _RestConvertor())  # ``{name:rest}`` in the path of a route


class WholeMount(Mount):
    """A Mount whose application gets every path below its own."""

    def __init__(self, path: str, app: ASGIApp, **options: Any) -> None:
        super().__init__(path, app, **options)
        compiled = compile_path(self.path + "/{path:rest}")
        self.path_regex, self.path_format, self.param_convertors = compiled
