"""Where the platform is and how it is to be asked: command line, environment, TOML files.

In a pyproject.toml, or without ``tool.doublecheck`` in a file that ``--platform-config`` names::

    [tool.doublecheck]
    target = "pinned"                      # which one it is, unless somebody says

    [tool.doublecheck.targets.pinned]      # a double of another interpreter
    emulator_command = "venv/bin/agentdouble serve --port 0"

    [tool.doublecheck.targets.staging]     # --platform-target=staging, every time
    url = "https://agent.example.com"
    control_plane = "https://tools.example.com"
    offers = ["application", "control_plane", "sandbox"]
    tool_id = "t-1"
    access_key_env = "STAGING_ACCESS_KEY"  # the names of variables, never keys
    secret_key_env = "STAGING_SECRET_KEY"
    api_key_env = { application = "STAGING_API_KEY" }

``keys`` has all keys. What stands outside of ``targets`` is of ``live``, or of ``double`` with
``kind = "double"``.
"""
