"""The workbench: a session's terminals and files, served from inside its confinement.

One small HTTP server a session, on a Unix socket, started on first use like a kernel: so its
paths, its user, its limits and what it sees are those of the session's code by construction.
``client`` runs in the double; all the rest runs in the session and imports nothing of the rest
of the double.
"""
