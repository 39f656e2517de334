"""The journal: what was requested of a double, what it answered, and what else happened in it.

``middleware`` writes one entry for each request and each WebSocket; ``entries`` holds them, with
functions that note an unknown, a fault or a failure in the entry of the current request.
``routes``, ``event_routes`` and ``what_if_routes`` have ``/_emulator/journal``,
``/_emulator/events`` and ``/_emulator/what-if``. ``failures`` reports the double's own errors by a
reference that is in the entry, too.

``resending`` makes a request from an entry. ``what_if`` sends one again under another answer to an
unknown: ``what_if_differences`` finds what differs, with ``core.diff``, and ``json_leaves`` the ids
to map.

It may import ``server``, ``core`` and the settings. It knows no surface.
"""
