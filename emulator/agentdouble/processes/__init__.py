"""The processes that run foreign code: how they are forked, confined, counted and ended.

A session's kernels and a runtime's instances both use this package. ``fork_server`` is the warm
process that forks them, with everything that runs in a fork. ``copies`` forks living kernels.
``launcher`` owns a fork server and starts processes, and ``spawned_process`` is one that is not
forked. ``isolation`` finds the measures that this machine offers. ``workspace`` makes the
directories of sessions, ``session_files`` reads them while code may change them, and
``files_snapshot`` archives them. ``watch`` finds what grows over its limits, ``usage`` measures
memory and disk, and ``capacity`` refuses a start for which the machine has no resources.

This package may import ``core`` and ``errors``. What runs in a fork imports nothing of the double
but ``fork_server`` and ``copies``, because every kernel inherits what it has imported.
"""
