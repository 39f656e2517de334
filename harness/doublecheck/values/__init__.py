"""The answers of a platform, as frozen values that a notebook can display.

``executions`` has the results of code and commands, and what lets a value raise the error that it
contains, ``agents`` the events and sessions of agents and the answers of MCP and A2A, and ``double``
what only a double has: sessions, journal, faults and the ledger.

Values neither read nor send requests: the clients and ``wire`` create them. This package may import
only ``core`` and ``errors``.
"""
