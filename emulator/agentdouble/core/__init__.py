"""What every other package uses: time, unknowns, signatures, and small tools.

``clock`` is the only source of time for the rules of the platform. ``ledger`` lists what the
specification leaves open (``unknowns.toml``), with the answers in force; a ``profile`` sets them
for one deployment. ``signing`` signs and verifies control-plane requests, with
``canonical_request``. ``invoke_tool`` builds InvokeTool requests and reads its envelope;
``code_tool`` is the tool that agents call with them. ``environment`` and ``running_doubles`` let
programs find a double. ``diff`` compares two answers, and ``event_stream`` reads one that is a
stream. The rest are tools: the bus of events, threads, late imports, strict JSON, ``redaction``,
``log_filters``, durations as texts, names that were probably meant (``suggestions``), output on a
``terminal``, and the request that caused a request (``request_cause``, ``model_calls``).

A light install has all of this. It may import only ``errors``, the standard library, and what a
light install has; never Starlette or uvicorn.
"""
