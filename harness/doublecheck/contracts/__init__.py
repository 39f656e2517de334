"""The contract checks: pytest modules, one per group of clauses.

``doublecheck run``, ``check()`` and ``pytest --pyargs doublecheck.contracts`` all run them.
``clauses`` holds the clauses and their marker. ``evidence`` says what shows a surface, and
``surface_states`` which surfaces a target has. ``verdicts`` decides which checks run and what a
failure means, ``failure_report`` explains a failure in ``sentences``, ``run_result`` holds the
results and ``exit_status`` turns them into an exit code. ``conftest`` has the fixtures of the checks.

``reference`` and ``applications`` are the applications that a target has to serve;
``reference_files`` writes them to a folder, and ``hosting`` deploys them on a control plane.
``engine`` asks the question of a check in every way in which its answer must be true: with
generated values from ``inputs``, after ``disturbances``, and several times at once. ``sequences``
and the ``*_model`` modules say what must be true after any sequence of calls. ``losses`` repeats
what fails because answers are lost on the way, and ``leftovers`` removes what the checks created.

This package may import the clients, but not the code that starts a run or reports on it.
"""
