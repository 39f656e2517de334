"""The answers of a platform, as frozen values that a notebook can display.

``sandbox`` has the results of code and commands, ``agents`` the events and sessions of agents and
the answers of MCP and A2A, ``double`` what only a double has (sessions, journal, faults), and
``unknowns`` the ledger. ``failures`` lets a value raise the error that it contains.

A value reads no request and sends none: the clients and ``wire`` create it. Only ``core`` and
``errors`` are below this room.
"""
