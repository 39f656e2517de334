"""The reference applications: what a target must run for checks that look inside it.

``doublecheck contracts app`` writes this package beside a thin application of either SDK, so that a
check means the same on both. ``agentdouble_apps`` is for one of them; the rest imports neither SDK,
and nothing here imports the harness.
"""
