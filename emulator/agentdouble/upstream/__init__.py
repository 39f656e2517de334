"""HTTP/1.1 to servers behind the double: an MCP service's backend, an instance of a runtime.

``connection`` is one connection with one request at a time, whose two bodies are streamed at the
same time. ``connections`` keeps the connections to one server.
"""

from agentdouble.upstream.connections import Answer, Connection, Connections, RawHeaders

__all__ = ["Answer", "Connection", "Connections", "RawHeaders"]
