"""The answers of a platform, as frozen values that a notebook can display.

``sandbox`` has the results of code and commands, ``agents`` the events and sessions of agents and
the answers of MCP and A2A, ``double`` what only a double has (sessions, journal, faults), and
``unknowns`` the ledger. ``failures`` lets a value raise the error that it contains.

Values neither read nor send requests: the clients and ``wire`` create them. This package may import
only ``core`` and ``errors``.
"""
