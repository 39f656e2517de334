"""Where a definition's operations are called."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.openapi.definition import Address, Definition, Operation
from agentdouble.mcp_services.openapi.reading import listed, text


class Addresses:
    """The base URL of each operation: the one that is given, else the definition's."""

    def __init__(
        self, definition: Definition, base_url: str | None, variables: Mapping[str, str]
    ) -> None:
        self._definition = definition
        self._base_url = _checked(base_url) if base_url is not None else None
        self._variables = variables
        for operation in definition.operations:
            self.of(operation)

    def of(self, operation: Operation) -> str:
        """Return an operation's base URL, without a slash at its end."""
        if self._base_url is not None:
            return self._base_url
        address = operation.address or self._definition.address or Address("/")
        url = _filled(address, self._variables)
        return _checked(urljoin(self._definition.origin or "", url))


def _filled(address: Address, variables: Mapping[str, str]) -> str:
    url = address.url
    for name, variable in address.variables.items():
        value = variables.get(name, text(variable.get("default")))
        allowed = listed(variable.get("enum"))
        if allowed and value not in allowed:
            names = ", ".join(map(repr, allowed))
            raise DefinitionError(
                f"the server variable {name!r} may be one of {names}, not {value!r}"
            )
        url = url.replace(f"{{{name}}}", value)
    return url


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or any(one <= " " or one == "\x7f" for one in url):
        raise DefinitionError(
            "it does not say where the API is: give base_url, an http(s) URL, such as "
            "'https://api.example.com/v1'"
        )
    if parts.query or parts.fragment:
        raise DefinitionError("the API's URL has a query or a fragment, which no path can follow")
    return url.rstrip("/")
