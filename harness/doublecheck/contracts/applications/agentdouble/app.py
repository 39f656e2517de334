"""The reference application, and one without a ping function; what it does: reference/actions.py."""

import os

from reference.actions import BARE_NAME, NAME, Actions

from agentdouble import SimpleApp, run_code

app = SimpleApp(NAME)
actions = Actions(lambda code, headers: run_code(code))  # which finds the session by itself


@app.entrypoint
async def entrypoint(payload: dict, headers: dict):
    """Perform the action that the payload names."""
    return await actions.do(payload, headers)


@app.ping
def ping() -> str:
    """Answer that the application is running."""
    return actions.ping()


bare = SimpleApp(BARE_NAME)


@bare.entrypoint
async def say(payload: dict, headers: dict) -> str:
    """Return the prompt."""
    return payload["prompt"]


if __name__ == "__main__":
    app.run(os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000")))
