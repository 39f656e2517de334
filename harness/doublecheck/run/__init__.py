"""Open a platform, and run the contract checks on it, for Python, notebooks and commands.

``platform`` has ``connect()``, which returns a client that can also ``check()`` itself. ``check``
has the functions ``check()``, ``calibrate()`` and ``unknowns()`` of the package.

``command`` is ``doublecheck run``, and ``pytest_run`` runs pytest in the current process.
``check()`` uses a second process instead, because pytest takes over the streams of its process:
``checks_process`` starts it, ``subject`` describes the platform to it, and ``progress_bar`` shows
its progress.

This package may use ``calibration``, ``reports``, ``contracts`` and what these use.
"""
