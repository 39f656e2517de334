pytest_plugins = ["pytester"]

# httpx imports it when its first client is made and keeps its classes. If that were inside a
# pytester run, which forgets what it has imported, httpx would know its errors no more.
import httpcore  # noqa: E402, F401
