"""Agents of google-adk of many kinds, on ``adk api_server`` and on the double: the same answers.

``applications`` has the agents, ``cases.py`` what each is asked, ``differences.py`` what may differ
and why. Both servers run in one environment, and start once for all agents::

    python3 -m venv adk && adk/bin/pip install 'google-adk[a2a]' -e '.[emulator]'
    export DOUBLECHECK_ADK_PYTHON=$PWD/adk/bin/python
    python -m pytest tests/real_targets/agents
    python -m tests.real_targets.agents         # prints a table; names of agents choose some
"""
