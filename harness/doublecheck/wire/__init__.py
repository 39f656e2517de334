"""The requests and answers of each surface, as functions without input or output.

Only the present time, which a signature needs, is read here.

``calls`` has the request and the reader of its answer that a client needs for a call. There is a
module for each surface: ``api_server``, ``application``, ``sandbox``, ``data_plane``, ``mcp``,
``a2a``, and ``admin`` for the routes that only a double has. ``event_stream`` reads server-sent
events, and ``results`` reads the result in an exchange.

``exchanges`` are requests with their answers, without secrets. ``request_log`` keeps a client's
last exchanges, and ``call_log`` those of the current test for its report.

This package may import httpx's types, ``target`` and ``values``.
"""
