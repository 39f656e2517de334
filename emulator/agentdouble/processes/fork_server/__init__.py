"""A fork server for kernels: one warm process that forks a kernel in milliseconds.

``server`` is that process. It has imported ipykernel and runs no user code. It is single-threaded,
so that a fork of it is a complete process. It adopts and ends the processes that dead kernels
leave, and it ends all processes when its socket closes. ``processes`` has its parent, the guardian.
``child`` and the kernels run in the forks. ``client`` runs in the double. Client and server
exchange the messages of ``protocol`` over one socket.

These modules must not import the rest of the double, except what ``copies`` has for forks, because
every kernel inherits the server's imports.
"""
