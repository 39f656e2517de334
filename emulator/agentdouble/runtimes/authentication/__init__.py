"""Who may call a runtime, as which identity, and who owns a session (section 5, AUT-02, AUT-03).

``authorizers`` has the authorizer of a definition. The ``gatekeeper`` checks the key of a request,
or its token with ``tokens``, which fetches the keys of issuers. ``identity`` limits a caller to its
own sessions, which it finds in path and headers, and for a run in the body. ``tip_tokens`` signs
the token by which an application can verify who calls.
"""
