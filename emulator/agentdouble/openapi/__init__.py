"""OpenAPI documents of what a double serves, made from its routes.

An endpoint's docstring is the summary of its operation, and ``@operation`` beside it names the
types of its bodies. ``operation`` has this decorator, and finds the operations behind routes,
however they are nested. Every route uses it, so it imports nothing but Starlette; ``document`` is
imported when somebody asks for a document.
"""

from agentdouble.openapi.operation import Answer, Format, Operation, hidden, operation

__all__ = ["Answer", "Format", "Operation", "hidden", "operation"]
