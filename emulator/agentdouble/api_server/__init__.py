"""API-server mode: sessions, events, runs and artifacts over HTTP (section 4.2).

``server`` assembles the application and has the routes of artifacts; ``endpoints`` has the other
routes, ``models`` their bodies, ``request_values`` checks a request, and ``response_json`` has the
JSON of responses. They call ``sessions``, ``artifacts`` and ``runs``. A ``run`` is a
``function_run`` of an agent that is a function, or a ``framework_run`` of one whose framework has
its own runner, with the services of ``run_host`` and the parsed events of ``histories``;
``agent_run`` is their side on the agent's loop, and ``run_responses`` frames the events. ``stores``
holds sessions and artifacts in memory and ``persistent`` in the state; ``state_scopes`` splits the
state of a session.

This package may import ``agents``, ``state`` and ``journal``, and no surface.
"""

# here, so that the server needs no other import before the first request
PATHS = (
    *("/apps/{rest:path}", "/run", "/run_sse", "/list-apps", "/version", "/apps"),
    *("/docs", "/agent-identity/finalize"),
)
RUN_LIVE = "/run_live"
