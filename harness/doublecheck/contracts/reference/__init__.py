"""The reference applications: what a target must run for checks that look inside it.

This package knows no SDK. ``doublecheck contracts app`` writes it beside an application of either
SDK, so it imports neither of them, and not the harness.
"""
