"""The reference applications: what a target must run for checks that look inside it.

``doublecheck contracts app`` writes this package next to a thin application for one of the two
SDKs, so that a check means the same on both. Only ``agentdouble_apps`` imports agentdouble, and only
``executor`` the A2A SDK. Nothing here imports the harness.
"""
