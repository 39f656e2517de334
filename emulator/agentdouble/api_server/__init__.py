"""API-server mode: sessions, events, runs and artifacts over HTTP (section 4.2)."""

# here, so that the server needs no other import before the first request
PATHS = (
    *("/apps/{rest:path}", "/run", "/run_sse", "/list-apps", "/version", "/apps"),
    *("/docs", "/agent-identity/finalize"),
)
RUN_LIVE = "/run_live"
