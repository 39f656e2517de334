"""The browser: a real Chromium for each session, which several clients can drive at once.

``process`` runs in the session's confinement: it starts Chromium, speaks to it over a pipe and
lets ``multiplexer`` share it among clients. ``browser`` and ``browsers`` are the double's side,
``input_driver`` and ``actions`` drive it through Playwright. ``process`` and what it imports are
loaded in the fork server, so they import nothing of the double.

A multiplexer shares the browser, not a port. Each client gets a browser-level session of its own, by
``Target.attachToBrowserTarget``, and Chromium itself keeps clients apart and ends what they made when
they leave. The double hands the process one end of a socket pair for each client, so there is no
address that a session could put something else at.
"""
