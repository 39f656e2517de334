"""A2A applications. The SDK is imported when a class is registered or a request arrives.

``application`` is the A2AApp; its first request makes a ``service``, which joins the SDK's handler
with ``bindings``, the executor and the task store. ``guarding_executor`` ends every turn properly,
with the ``events`` in the order of the protocol, on the ``executor_loop``, and ``runner_executor``
lets an agent answer.
``task_stores`` and ``push`` are the SDK's with our additions. ``cards`` makes and checks agent
cards. ``paths`` needs no SDK, so that a double can route requests before it imports one.
"""

from agentdouble.apps.a2a.application import A2AApp

__all__ = ["A2AApp"]
