"""The workbench: the server of a session's terminals and files, inside the session's confinement.

Each session has one small HTTP server on a Unix socket. It is forked on first use, as a kernel is,
so it has the same paths, user, limits and links as the session's code. The double creates the
socket where the session cannot reach it, and passes it on. If a session could replace the socket,
the double would connect to the wrong one. ``client`` runs in the double. All other modules run in
the session and import no other part of the double.
"""
