"""The contract checks against other implementations: the platform's SDK, and google-adk.

Both serve the reference applications in environments of their own, with the sandbox of a double,
and every check asks them as it asks a live target. A test fails where one departs from a clause in
a way that ``deviations.toml`` does not explain. Then agents on the platform's SDK call the double's
A2A and MCP applications, and agents of google-adk (``agents``) run in both servers, for which its
environment has the double, too. The table in harness/docs/implementations.md is what the last command but one
prints; the last runs every command of agentkit's command line against a double::

    python3 -m venv adk && adk/bin/pip install 'google-adk[a2a]' -e '.[emulator]'
    python3 -m venv agentkit && agentkit/bin/pip install 'agentkit-sdk-python[identity-runtime]'
    export DOUBLECHECK_ADK_PYTHON=$PWD/adk/bin/python
    export DOUBLECHECK_AGENTKIT_PYTHON=$PWD/agentkit/bin/python
    python -m pytest tests/real_targets
    python -m tests.real_targets.table
    python -m tests.real_targets.agentkit_commands
"""
