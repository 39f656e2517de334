"""The reference applications: what a target must run for checks that look inside it.

This package knows no SDK. ``doublecheck contracts app`` writes it beside a thin application of
either SDK, so that a check means the same on both. It imports neither SDK, and not the harness.
"""
