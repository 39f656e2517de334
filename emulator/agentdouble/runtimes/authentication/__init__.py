"""Who may call a runtime, as whom, and whose sessions they are (section 5, AUT-02, AUT-03).

``authorizers`` are the values that a definition has, ``tables`` their form in a settings file.
"""

from agentdouble.runtimes.authentication.authorizers import (
    ApiKey,
    Authorizer,
    JwtAuth,
    KeyAuth,
    location_of,
    make_key,
)

__all__ = ["ApiKey", "Authorizer", "JwtAuth", "KeyAuth", "location_of", "make_key"]
