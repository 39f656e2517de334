"""The decorator contract (section 4.6): the applications that authors write.

``simple`` (with ``simple_responses``), ``mcp`` and ``a2a`` hold one kind of application each:
SimpleApp, MCPApp and A2AApp. ``contract`` checks decorated functions, ``loading`` imports
applications from a specification, ``hosted`` serves them in a double, and ``adapters`` turns
foreign agents into ours.

An application is an ASGI application and also runs without a double. So this package may import
``agents``, ``mcp_hosting``, ``server`` and ``state``, and no surface.
"""

from agentdouble.apps.a2a import A2AApp
from agentdouble.apps.mcp import MCPApp
from agentdouble.apps.simple import SimpleApp

__all__ = ["A2AApp", "MCPApp", "SimpleApp"]
