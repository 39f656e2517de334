"""Real clients of MCP, A2A and the scripted model, unmodified, against one double.

They pin libraries that exclude each other and ours, so each runs in an environment of its own::

    python -m tests.real_clients

makes the environments (once, below ``.nox``), serves a double, has each client talk to it in a
process of its own, and prints a table of what was run; the exit code is 1 if a client failed. With
``--only NAME`` it runs some of them, as CI does. The JavaScript ones need Node 22, which
``pip install -e '.[conformance]'`` brings.

- ``clients.py``: the clients and what they are made of. ``environments.py`` makes that.
- ``doubles.py``: the double. ``hosted.py``: the applications of its runtimes.
- ``programs/``: what each client does, told as values. ``expected.py``: the values that are right.
- ``from_npm/``: the lock of the JavaScript clients; ``npm install --package-lock-only
  --omit-lockfile-registry-resolved`` there makes it anew.
"""
