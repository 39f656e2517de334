"""The workbench: a session's terminals and files, served from inside its confinement.

It is one small HTTP server for each session, on a Unix socket, forked on first use as a kernel is: so
paths, user, limits and links are those of the session's code by construction. The double makes the
socket, where the session cannot reach it, and hands it over: if a session could put another socket in
its place, the double would call that one. ``client`` runs in the double; everything else runs in the
session and imports nothing of the rest of the double.
"""
