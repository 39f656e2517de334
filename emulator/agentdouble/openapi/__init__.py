"""OpenAPI documents of what a double serves, made from its routes.

An endpoint's docstring is the summary of its operation, and ``@operation`` beside it names the
types of its bodies. This module and ``operation`` import nothing but the standard library, because
every route uses them; ``document`` is imported when somebody asks for a document.
"""

from agentdouble.openapi.operation import Answer, Format, Operation, hidden, operation

__all__ = ["Answer", "Format", "Operation", "hidden", "operation"]
