"""The JavaScript kernel: a thin Jupyter kernel in front of a deno process.

``kernel`` speaks Jupyter, ``cells`` runs one cell, ``engine`` is the deno process with its
permissions, ``inspector`` its protocol, ``boot.js`` what runs in it first, ``outputs`` what
comes out of it. Deno's own ``deno jupyter`` takes 176 MB a session instead of 31, loses
outputs, dies of an interrupt and knows no permissions (measured, deno 2.9.8).

The fork server forks it, so nothing here may import the rest of the double but
``fork_server``.
"""
