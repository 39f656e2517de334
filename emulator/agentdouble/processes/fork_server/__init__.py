"""A fork server for kernels: one warm process that forks a kernel in milliseconds.

``server`` is that process. It has imported ipykernel, is single-threaded, so that a fork of it is a
whole process, and runs no user code. It adopts what dead kernels leave and ends it, and it ends
everything when its socket closes. ``guardian`` is its parent. ``child`` and the kernels run in what it
forks. ``client`` runs in the double; ``provisioner`` makes it a kernel provisioner of jupyter_client.
They speak ``protocol`` over one socket.

Nothing here may import the rest of the double: what the server imports, every kernel carries.
"""
