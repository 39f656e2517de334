"""HTTP/1.1 to what stands behind the double: an MCP service's backend, an instance of a runtime.

``connection`` is one connection, a request at a time, both bodies streamed at once;
``connections`` keeps those to one server.
"""

from agentdouble.upstream.connection import Answer, Connection, RawHeaders
from agentdouble.upstream.connections import Connections

__all__ = ["Answer", "Connection", "Connections", "RawHeaders"]
