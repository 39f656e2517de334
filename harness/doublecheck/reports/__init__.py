"""Reports on a run of the checks, and on the tests of a user.

``collector`` is the pytest plugin that collects the results of a run. ``report`` has the classes
``Report`` and ``Reports``; ``terminal``, ``html`` and ``document`` (JSON) render them.

The ``pytest_report`` hooks extend what pytest prints about a failed test: they remove our own
frames, and add the platform calls of the test (``captured_calls``).

This package reads the results of ``contracts``, but never starts a run.
"""
