"""Resources, prompts and completions, registered with the SDK's own application class.

``MCPServer`` makes the schemas, matches templates, renders and converts. It gives no context to a
resource without a template, replaces or drops a second one of a name, and hides why one fails: the
functions that it gets here do without these (``functions.py``).
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError
from mcp.shared.uri_template import UriTemplate

from agentdouble.apps.contract import location
from agentdouble.apps.mcp.functions import Function
from agentdouble.apps.mcp.parameters import context_parameter, has_resolved
from agentdouble.apps.mcp.tools import signature_of
from agentdouble.errors import DecorationError

_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")


class Offers:
    """What an application offers beside its tools."""

    def __init__(self, name: str) -> None:
        self._name = name
        with _keep_root_logger():
            self.sdk: MCPServer = MCPServer(name)
        self.uris: set[str] = set()
        self.templates: dict[str, UriTemplate] = {}
        self.prompts: dict[str, tuple[str, ...]] = {}
        self.completion: Function | None = None

    def has_resource(self, uri: str) -> bool:
        """Return whether a resource or a template answers for an address."""
        return uri in self.uris or any(
            one.match(uri) is not None for one in self.templates.values()
        )

    def variables(self, uri: str) -> tuple[str, ...] | None:
        """Return the names of a template's variables, or None for what is no template here."""
        template = self.templates.get(uri)
        return None if template is None else tuple(template.variable_names)

    @staticmethod
    def check_address(uri: object) -> None:
        """Raise DecorationError for what is no address of a resource."""
        if not isinstance(uri, str) or not _WITH_SCHEME.match(uri):
            raise DecorationError(
                f"@app.resource takes an address with a scheme, such as 'notes://{{name}}', and was "
                f"given {uri!r}.",
                decorator="resource",
            )

    def add_resource(
        self, uri: str, function: Callable[..., Any], names: Mapping[str, Any], **shown: str | None
    ) -> None:
        """Offer a function's result at an address or template; raise DecorationError."""
        if uri in self.uris or uri in self.templates:
            raise self._taken("resource", uri)
        # a tool that reads the resource may catch this error, as it would with the SDK
        read = self._function(f"The resource {uri}", function, names, "resource", ResourceError)
        with _refused(function, "resource"):
            self.sdk.resource(uri, **_shown(function, shown))(read.for_sdk())
            template = UriTemplate.parse(uri)
        if template.variable_names:
            self.templates[uri] = template
        else:
            self.uris.add(uri)

    def add_prompt(
        self, function: Callable[..., Any], names: Mapping[str, Any], **shown: str | None
    ) -> None:
        """Offer a function's messages; raise DecorationError."""
        given = _shown(function, shown)
        name = given["name"]
        if name in self.prompts:
            raise self._taken("prompt", name)
        made = self._function(f"The prompt {name}", function, names, "prompt")
        with _refused(function, "prompt"):
            self.sdk.prompt(**given)(made.for_sdk())
        self.prompts[name] = made.takes

    def set_completion(self, function: Callable[..., Any], names: Mapping[str, Any]) -> None:
        """Let a function complete arguments; raise DecorationError."""
        if self.completion is not None:
            raise DecorationError(
                f"{self._name} has a function for completions already, and one is for all.",
                decorator="completion",
            )
        made = self._function("The completion", function, names, "completion")
        if len(made.takes) != 3:
            raise DecorationError(
                f"@app.completion takes 'def f(ref, argument, context)'; {location(function)} is "
                "not that.",
                decorator="completion",
            )
        self.completion = made

    def _function(
        self,
        what: str,
        function: Callable[..., Any],
        names: Mapping[str, Any],
        decorator: str,
        *raises: Callable[[str], Exception],
    ) -> Function:
        check_kind(function, decorator)
        signature = signature_of(function, names, decorator)
        if has_resolved(signature):
            raise DecorationError(
                f"@app.{decorator} resolves no parameters, and {location(function)} has some with "
                "Resolve(...): that is for tools.",
                decorator=decorator,
            )
        context = context_parameter(function, signature, decorator)
        return Function(f"{what} of {self._name}", function, signature, context, *raises)

    def _taken(self, decorator: str, name: str) -> DecorationError:
        return DecorationError(
            f"{self._name} has a {decorator} {name!r} already; give this one another name.",
            decorator=decorator,
        )


def check_kind(function: Callable[..., Any], decorator: str) -> None:
    """Raise DecorationError for what is no function with one result."""
    yields = inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function)
    if callable(function) and not inspect.isclass(function) and not yields:
        return
    raise DecorationError(
        f"@app.{decorator} takes a function that returns its result; {location(function)} is not "
        "that.",
        decorator=decorator,
    )


def _shown(function: Callable[..., Any], given: Mapping[str, str | None]) -> dict[str, Any]:
    """Return what is shown of a function, from its name and docstring where it is not given."""
    shown = {name: value for name, value in given.items() if value is not None}
    shown.setdefault("name", getattr(function, "__name__", type(function).__name__))
    shown.setdefault("description", inspect.cleandoc(function.__doc__ or ""))
    return shown


@contextmanager
def _refused(function: Callable[..., Any], decorator: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # of the SDK and of pydantic, without a common base
        raise DecorationError(
            f"@app.{decorator} cannot take {location(function)}: {error}", decorator=decorator
        ) from error


@contextmanager
def _keep_root_logger() -> Iterator[None]:
    """Keep the SDK from configuring the root logger, which it does if that has no handler."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
