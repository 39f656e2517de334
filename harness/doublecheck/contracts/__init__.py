"""The contract checks: pytest modules, each with the checks of a group of clauses.

``doublecheck run`` and ``check()`` run them; so does ``pytest --pyargs doublecheck.contracts``.
``clauses`` has the clauses and their marker, ``evidence`` finds out which surfaces a target has,
``verdicts`` decides which checks run and what a failure means, ``failure_report`` explains it, and
``run_result`` has the results. ``conftest`` has the fixtures of the checks.

``reference`` and ``applications`` are the applications that a target has to serve;
``reference_files`` writes them to a folder, and ``hosting`` deploys them on a control plane.
``inputs`` generates what is sent, and ``leftovers`` removes what the checks created.

The room uses the clients, and nothing that starts a run or reports on it.
"""
