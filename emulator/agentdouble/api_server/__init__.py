"""API-server mode: sessions, events, runs and artifacts over HTTP (section 4.2)."""

# known without importing the rest, which the first request does
PATHS = (
    *("/apps/{rest:path}", "/run", "/run_sse", "/list-apps", "/version", "/apps"),
    *("/docs", "/openapi.json", "/agent-identity/finalize"),
)
RUN_LIVE = "/run_live"
