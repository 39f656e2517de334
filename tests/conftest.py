pytest_plugins = ["pytester"]

# A pytester run forgets what it has imported. These would not work if they were imported in one
# and once more after it: httpx knows its errors by the classes of httpcore, and two copies of
# protobuf's messages end the process.
import a2a.types  # noqa: E402, F401
import httpcore  # noqa: E402, F401
