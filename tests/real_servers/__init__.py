"""Other people's MCP servers behind services, used by the current official client.

``python -m tests.real_servers`` makes their environments (npm and virtual environments, once, below
``.nox/real-servers``), and prints a table: each server, over HTTP and over standard input and
output, and the official suite against servers on the SDK of TypeScript, directly and through a
service. ``--only NAME`` chooses. It ends with 1 if anything differs. The extra ``conformance`` brings Node; it takes some minutes, so CI does not run it.
"""
