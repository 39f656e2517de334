"""API-server mode: sessions, events, runs and artifacts over HTTP (section 4.2)."""
