"""The formats of requests and answers, as functions without input or output.

Only the present time, which a signature needs, is read here.

``calls`` has requests as values, and the reader of an answer. There is a module for the format of
each surface: ``api_server``, ``application``, ``control_plane``, ``data_plane``, ``mcp`` and
``a2a`` (JSON-RPC), ``admin`` for the routes that only a double has, and ``output_feed`` for its
live outputs. ``event_stream`` reads server-sent events, and ``results`` reads the result in an
exchange. The methods of the clients say which requests there are.

``exchanges`` are requests with their answers, without secrets. ``request_log`` keeps a client's
last exchanges, and ``call_log`` those of the current test for its report.

This package may import httpx's types, ``target`` and ``values``.
"""
