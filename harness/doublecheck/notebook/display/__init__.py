"""Displays of values in a notebook: escaped HTML without assets, readable in light and dark themes.

``agents`` shows events, sessions, MCP and A2A; ``double`` shows sessions, journal and unknowns;
``platforms`` shows what ``connect()`` returns; ``sandbox_log`` is for ``%sandbox log``; ``outputs``
shows what code, commands and the browser return. Each function takes a value and returns HTML,
built with ``core.markup``.
"""
