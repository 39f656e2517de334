"""Managed runtimes: each application in processes of its own, behind one gateway (sections 1, 5).

``definition`` says what a runtime is, ``declarations`` reads it from a table; ``registry`` has
those that are declared and made, and keeps them; ``runtimes`` runs them by name; a ``Runtime`` has
versions and scales ``Instance``s between them and zero; ``launching`` starts an instance's process;
``gateway`` finds the runtime of a request, and ``proxying`` passes it to a leased instance.
A request goes gateway, authentication, lease, proxy, and back as a stream.
"""

# Nothing else is here, so that a double knows its paths without the import of what hosts runtimes.
PREFIX = "/runtimes/"
ADMIN_PATHS = ("/metrics", "/runtimes", "/runtimes/{name:path}")
