"""The reference agent in API-server mode, as a hosted runtime. Its agents are in agents/."""

import os

from agentdouble import Emulator

if __name__ == "__main__":
    host, port = os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "8000"))
    Emulator(agents="agents", runtimes=(), host=host, port=port).serve(lambda: None)
