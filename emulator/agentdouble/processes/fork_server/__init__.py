"""A fork server for kernels: one warm process that forks a kernel in milliseconds.

``server`` is that process; it has imported ipykernel and is single-threaded, so that a fork
of it is a whole process; ``guardian`` is its parent. ``child`` and the kernels run in what it forks. ``client`` runs in
the double, ``provisioner`` makes it a kernel provisioner of jupyter_client. They speak
``protocol`` over one socket.

Nothing here may import the rest of the double: what the server imports, every kernel carries.
"""
