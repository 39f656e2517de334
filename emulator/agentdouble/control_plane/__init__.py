"""The control plane: dispatch by Action and Version, the envelope, the actions (4.4, 2.8).

``dispatch`` reads a request, ``authentication`` checks its signature, and ``actions`` collects the
actions of the other modules, which ``action_methods`` makes of methods. ``wire`` reads bodies as
pydantic models, ``public_errors`` has the platform's error codes, and ``addresses`` the addresses
in answers. ``listing`` filters and pages lists.

The modules call the sandbox, the runtimes and the MCP services, and never import a surface.
``actions`` is imported at the first request, because a double starts faster without it.
"""
