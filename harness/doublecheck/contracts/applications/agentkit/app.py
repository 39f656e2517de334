"""The reference application, with the platform's own SDK; see reference/actions.py."""

import json
import os

from agentkit.apps import AgentkitSimpleApp
from agentkit.utils.ve_sign import ve_request
from reference.actions import NAME, Actions


def run_code(code: str, headers) -> str:
    """Run code in the caller's sandbox session, set by the environment; return the JSON of 2.7."""
    user, session = headers.get("user_id", "nobody"), headers.get("session_id", "none")
    operation = {"code": code, "timeout": 30, "kernel_name": "python3"}
    answer = ve_request(
        {
            "ToolId": os.environ["AGENTKIT_TOOL_ID"],
            "UserSessionId": f"{NAME}_{user}_{session}",
            "OperationType": "RunCode",
            "OperationPayload": json.dumps(operation),
            "Ttl": 120,
        },
        action="InvokeTool",
        version="2025-10-30",
        service=os.environ.get("AGENTKIT_TOOL_SERVICE_CODE", "agentkit"),
        region=os.environ.get("AGENTKIT_TOOL_REGION", "cn-beijing"),
        host=os.environ["AGENTKIT_TOOL_HOST"],
        scheme=os.environ.get("AGENTKIT_TOOL_SCHEME", "https"),
        ak=os.environ["VOLCENGINE_ACCESS_KEY"],
        sk=os.environ["VOLCENGINE_SECRET_KEY"],
    )
    return answer["Result"]["Result"]


app = AgentkitSimpleApp()
actions = Actions(run_code)


@app.entrypoint
async def entrypoint(payload: dict, headers: dict):
    """Perform the action that the payload names."""
    return await actions.do(payload, headers)


@app.ping
def ping() -> str:
    """Answer that the application is running."""
    return actions.ping()


if __name__ == "__main__":
    app.run(os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000")))
