"""The reference application, and one without a ping function; what it does: reference/deeds.py."""

import os

from reference.deeds import BARE_NAME, NAME, Deeds

from agentdouble import SimpleApp, run_code

app = SimpleApp(NAME)
deeds = Deeds(lambda code, headers: run_code(code))  # which finds the session by itself


@app.entrypoint
async def entrypoint(payload: dict, headers: dict):
    """Do what the payload says."""
    return await deeds.do(payload, headers)


@app.ping
def ping() -> str:
    """Tell that it is there."""
    return deeds.ping()


bare = SimpleApp(BARE_NAME)


@bare.entrypoint
async def say(payload: dict, headers: dict) -> str:
    """Say the prompt."""
    return payload["prompt"]


if __name__ == "__main__":
    app.run(os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000")))
