"""The browser: a real Chromium for each session, which several clients can drive at once.

``process`` runs in the session's confinement. It starts Chromium, talks to it over a pipe, and
shares it among clients with ``multiplexer``. ``browser`` is the double's side. ``front_page`` is a
client that takes pictures. The fork server loads ``process`` and its imports, so they import no
other part of the double.

A multiplexer shares the browser, not a port. Each client gets its own browser-level session with
``Target.attachToBrowserTarget``. Chromium keeps the clients apart, and ends everything that a
client made when the client disconnects. For each client, the double passes one end of a socket pair
to the process, so there is no address at which a session could put another server.
"""

WINDOW = 1280, 1024  # width and height, in pixels
