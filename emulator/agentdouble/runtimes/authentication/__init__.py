"""Who may call a runtime, as which identity, and who owns a session (section 5, AUT-02, AUT-03).

``authorizers`` has the values of a definition and their form in a settings file. The
``gatekeeper`` gets the ``identity`` of a request from ``keys`` or ``tokens``. ``tokens`` checks
against the keys that ``issuers`` fetches. ``isolation`` limits an identity to its own sessions,
whose names ``naming`` finds in a request.
"""

from agentdouble.runtimes.authentication.authorizers import (
    ApiKey,
    Authorizer,
    JwtAuth,
    KeyAuth,
    location_of,
    render,
)
from agentdouble.runtimes.authentication.gatekeeper import Admission, GatewayAuthenticator

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
