"""Small helpers for every package.

``lazy_names`` lets ``doublecheck`` and ``doublecheck.results`` export names without importing their
modules. ``notebook_repr`` is the base of values that a notebook displays, and ``markup`` builds the
HTML of displays and reports. ``sanitize`` makes control characters of untrusted text visible.
``secret`` has a string type that is never printed by accident, ``exit_codes`` the exit codes of
runs, and ``atomic_files`` writes files atomically.

This package imports no other one. Every test run of an environment with the harness imports parts
of it, so its modules import nothing slow at the top.
"""
