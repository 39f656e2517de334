"""Who may call a runtime, as which identity, and who owns a session (section 5, AUT-02, AUT-03).

``authorizers`` has the values of a definition and their form in a settings file. The
``gatekeeper`` checks the key of a request, or its token with ``tokens``, which fetches the keys of
issuers. ``identity`` limits a caller to its own sessions, whose names it finds in a request.
"""

from agentdouble.runtimes.authentication.authorizers import (
    ApiKey,
    Authorizer,
    JwtAuth,
    KeyAuth,
    location_of,
    render,
)
from agentdouble.runtimes.authentication.gatekeeper import GatewayAuthenticator

__all__ = [
    "ApiKey",
    "Authorizer",
    "GatewayAuthenticator",
    "JwtAuth",
    "KeyAuth",
    "location_of",
    "render",
]
