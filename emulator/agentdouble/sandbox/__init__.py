"""The sandbox: sessions, each with real Jupyter kernels (sections 1 and 3).

``sessions`` is the entry point: ``SandboxSessions`` makes, finds and ends sessions, and ends those
that are due. ``session`` is one of them: its ``lifetime`` decides when it is due, and its ``turn``
lets one execution run at a time. What runs in it is behind the protocol ``session_processes``,
which says what may be relied on: ``local_processes`` are here, ``nodes`` has those of other
machines, and ``placement`` decides between them. ``ended_sessions`` remembers what has ended.

``kernel_pool`` starts kernels as ``fork_planner`` plans it and keeps some ready;
``kernel_channels`` has their sockets. ``execution``, ``outputs`` and ``result`` turn a kernel's
messages into the result of a cell; ``late_outputs`` has what comes after it.
``session_snapshots`` takes the snapshots of sessions on request and resumes them;
``sleeping_sessions`` takes them of sessions that expire, each with a ``sleeping_kernel``.
``kept_snapshots`` has those of both, and ``saved_snapshots`` what of them outlives the double.
``data_plane`` has the routes ``/v1/...``; ``workbench``, ``browser`` and ``javascript`` have the
programs that run in a session beside the Python kernel.

This package may import ``processes``, ``faults``, ``state`` and ``journal``, and no surface. This
file imports nothing, because the fork server imports modules of this package, and every kernel
carries what the fork server has imported.
"""
