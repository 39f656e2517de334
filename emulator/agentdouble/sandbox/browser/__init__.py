"""The browser: a real Chromium for each session, which several clients can drive at once.

``process`` runs in the session's confinement: it starts Chromium, speaks to it over a pipe and
lets ``multiplexer`` share it among clients. ``browser`` and ``browsers`` are the double's side,
``driver`` and ``actions`` drive it through Playwright, ``routes`` are its HTTP and WebSocket.

``process`` and what it imports lie in the fork server, so they import nothing of the double.
"""
