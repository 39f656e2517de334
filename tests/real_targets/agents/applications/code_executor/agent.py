"""An agent whose code is executed."""

from google.adk.agents import LlmAgent
from google.adk.code_executors import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionResult
from scripted import asked, last, model


class Adding(BaseCodeExecutor):
    def execute_code(self, invocation_context, code_execution_input):
        return CodeExecutionResult(stdout=f"ran {code_execution_input.code.strip()}")


def script(request):
    ran = last(request).code_execution_result or "ran" in asked(request)
    return "done" if ran else "```python\nprint(1 + 1)\n```"


root_agent = LlmAgent(name="coder", model=model(script), code_executor=Adding())
