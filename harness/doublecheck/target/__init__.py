"""The settings of a target, from the command line, the environment and pyproject.toml.

A table of a pyproject.toml::

    [tool.doublecheck]
    target = "shared"                      # the default target; a live one has to be named

    [tool.doublecheck.targets.shared]
    kind = "double"
    url = "http://127.0.0.1:8000"

    [tool.doublecheck.targets.staging]     # only with --platform-target=staging
    url = "https://agent.example.com"
    control_plane = "https://tools.example.com"
    offers = ["application", "control_plane", "sandbox"]
    tool_id = "t-1"
    access_key_env = "STAGING_ACCESS_KEY"  # the names of variables, never keys
    secret_key_env = "STAGING_SECRET_KEY"
    api_key_env = { application = "STAGING_API_KEY" }

``facts`` lists all keys, each a ``fact``. ``config_files`` reads the file, ``pytest_options`` the
options, and ``plan`` combines them with the environment, and makes a ``Target`` (``target``) of the
result. This package uses only ``core`` and ``errors``, and most of it is loaded by every test run.
"""
