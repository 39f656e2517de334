"""The JavaScript kernel: a thin Jupyter kernel in front of a deno process.

``kernel`` speaks Jupyter's protocol, and ``cells`` runs one cell, for which ``module_syntax`` turns
a module's syntax into a script's. ``engine`` is the deno process; ``deno`` has its command,
permissions and limits, and reads its output; ``inspector`` has its protocol. ``boot.js`` runs in
the engine before any cell.

We do not use Deno's own ``deno jupyter``: it takes 176 MB per session instead of 31, loses outputs,
dies at an interrupt and has no permissions (measured, deno 2.9.8).

The fork server forks this kernel, so it imports nothing of the double except ``fork_server``.
"""
