"""The JavaScript kernel: a thin Jupyter kernel in front of a deno process.

``kernel`` speaks Jupyter, ``cells`` runs one cell, ``engine`` is the deno process, ``deno`` its
command, permissions and limits, ``inspector`` its protocol, ``boot.js`` what runs in it first,
``outputs`` what it puts out. Deno's own ``deno jupyter`` takes 176 MB a session instead of 31, loses
outputs, dies of an interrupt and knows no permissions (measured, deno 2.9.8).

The fork server forks it, so it imports nothing of the double but ``fork_server``.
"""
