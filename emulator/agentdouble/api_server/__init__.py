"""API-server mode: sessions, events, runs and artifacts over HTTP (section 4.2).

``server`` assembles the application. ``routes`` and ``artifact_routes`` parse requests and call
``sessions``, ``artifacts`` and ``runs``. ``run`` runs an agent that is a function, ``framework``
one whose framework has its own runner; ``agent_run`` is their side on the agent's loop, and
``run_responses`` frames the events. ``stores`` holds sessions and artifacts in memory and
``persistent`` in the state. The room uses ``agents`` and ``state``, and imports no surface.
"""

# here, so that the server needs no other import before the first request
PATHS = (
    *("/apps/{rest:path}", "/run", "/run_sse", "/list-apps", "/version", "/apps"),
    *("/docs", "/agent-identity/finalize"),
)
RUN_LIVE = "/run_live"
