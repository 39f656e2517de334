"""Small helpers for every package.

``lazy_names`` lets ``doublecheck`` and ``doublecheck.results`` export names without importing their
modules. ``notebook_repr`` has the base of values that a notebook displays, secrets that are never
printed by accident, and untrusted text made visible. ``markup`` builds the HTML of displays and
reports, with ``trees`` of JSON and ``frames`` for foreign HTML. ``exit_codes`` has the exit codes
of runs, and ``atomic_files`` writes files atomically.

This package imports no other one. Every test run of an environment with the harness imports parts
of it, so its modules import nothing slow at the top.
"""
