"""The cause of a request to the double's model, which a framework sends with httpx.

run_code names its cause itself. A framework sends requests to a model with a client of its own, so
httpx's clients add the header to the requests that they build for the double's model, and to no
other. A client that is not of httpx names no cause.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from agentdouble.core import request_cause

_LIBRARIES = ("httpx", "httpx2")
_CLIENTS = ("Client", "AsyncClient")
_PATH = "/model/"
_prepared: set[str] = set()


def name_their_cause(host: Callable[[], str | None]) -> None:
    """Have the clients of httpx name the cause, once it is imported; ``host`` has the port, too."""
    for library in _LIBRARIES:
        if library not in _prepared and library in sys.modules:
            _prepared.add(library)
            __import__(library)  # it may still be on its way, in another thread
            for name in _CLIENTS:
                client = getattr(sys.modules[library], name)
                client.build_request = _naming_cause(client.build_request, host)


def _naming_cause(build: Callable[..., Any], host: Callable[[], str | None]) -> Callable[..., Any]:
    @wraps(build)
    def build_request(*arguments: Any, **named: Any) -> Any:
        request = build(*arguments, **named)
        cause = request_cause.headers()
        if cause and request.url.path.startswith(_PATH) and request.url.netloc.decode() == host():
            request.headers.update(cause)
        return request

    return build_request
