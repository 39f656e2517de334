"""Who may call a runtime, as whom, and whose sessions they are (section 5, AUT-02, AUT-03).

``authorizers`` are the values that a definition has, ``tables`` their form in a settings file.
The ``gatekeeper`` asks ``keys`` or ``tokens`` for the ``identity`` of a request, the latter with
the keys that ``issuers`` fetch by ``discovery``; ``isolation`` holds it to what is its own, by
what ``naming`` and ``a2a`` find in it by ``reading``, and ``ownership`` knows.
"""

from agentdouble.runtimes.authentication.authorizers import (
    ApiKey,
    Authorizer,
    JwtAuth,
    KeyAuth,
    location_of,
)
from agentdouble.runtimes.authentication.gatekeeper import Admission, GatewayAuthenticator
from agentdouble.runtimes.authentication.refusals import render

__all__ = [
    "Admission",
    "ApiKey",
    "Authorizer",
    "GatewayAuthenticator",
    "JwtAuth",
    "KeyAuth",
    "location_of",
    "render",
]
