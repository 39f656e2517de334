"""The sandbox: session instances, each with real Jupyter kernels (sections 1 and 3).

``instances`` is the entry point: it makes, finds and ends the ``Instance`` of a session, which runs
code in its ``Kernel``s. A session's deadline is set there, by ``Instances._create`` from the
setting ``session_ttl_s`` and by ``use``; ``destroy_due`` ends what is due. ``kernel_pool`` starts
kernels as ``fork_planner`` plans it and keeps some ready; ``kernel_channels`` has their sockets.
``execution``, ``outputs`` and ``result`` turn a kernel's messages into the result of a cell.
``session_snapshots`` keeps the snapshots that ``processes.copies`` takes. ``data_plane`` has the
routes ``/v1/...``; ``workbench``, ``browser`` and ``javascript`` have the programs that run in a
session beside the Python kernel.

This room may import ``processes``, ``faults``, ``state`` and ``journal``, and no surface. This file
imports nothing, because the fork server imports modules of this package, and every kernel carries
what the fork server has imported.
"""
