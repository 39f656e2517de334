"""The settings of a target, from the command line, the environment and TOML files.

A table of a pyproject.toml, or of a ``--platform-config`` file without ``tool.doublecheck``::

    [tool.doublecheck]
    target = "pinned"                      # the default target

    [tool.doublecheck.targets.pinned]      # a double with another interpreter
    emulator_command = "venv/bin/agentdouble serve --port 0"

    [tool.doublecheck.targets.staging]     # only with --platform-target=staging
    url = "https://agent.example.com"
    control_plane = "https://tools.example.com"
    offers = ["application", "control_plane", "sandbox"]
    tool_id = "t-1"
    access_key_env = "STAGING_ACCESS_KEY"  # the names of variables, never keys
    secret_key_env = "STAGING_SECRET_KEY"
    api_key_env = { application = "STAGING_API_KEY" }

The module ``facts`` lists all keys. Keys outside of ``targets`` belong to the target ``live``, or
to ``double`` with ``kind = "double"``.
"""
