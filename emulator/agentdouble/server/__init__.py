"""Serving ASGI applications with uvicorn, and what every HTTP request passes through.

``starting`` serves an application in the foreground or in its own thread, on the ``sockets`` and
``event_loops`` of this package; only this package opens a listening socket. ``application_loop``
runs application code on a loop in its own thread, with a ``cross_loop_queue`` back.
``uvicorn_server`` and ``protocols`` adapt uvicorn: start, stop, bounds on heads and connections.
``exhaustion`` keeps the log short when descriptors run out. ``certificates`` makes certificates for
https. ``guard`` checks Host, Origin, body size, API key and token before anything else reads a
request. ``disconnects`` is about requests whose client disconnects. ``upstream`` sends requests to
servers behind the double, and ``forwarded_prefix`` is for a double behind a gateway.

It may import ``core``. It knows neither the journal nor any surface.
"""
