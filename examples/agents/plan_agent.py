"""An agent of the OpenAI Agents SDK that acts through plans: it proposes one, waits for a person, and runs it.

    plan_agent.py [PROGRAM]

PROGRAM is `planwright` unless it is named. The model is a script, so that this runs without a key and without a network:
replace `Script()` by the name of a model to let one decide. The person approves in a terminal of their own:

    planwright approve note --version 1
"""

import asyncio
import json
import os
import sys

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

PLAN = {
    "id": "note",
    "title": "Keep a note",
    "goal": "Show that an agent acts after a person agreed",
    "steps": [{"id": "write", "tool": "local.write_file", "args": {"path": "note.txt", "content": "agreed"}}],
}


class Script(Model):
    """Does what a model would do with the answers of the tools: one call after the other."""

    calls = 0

    async def get_response(self, system_instructions, input, *args, **kwargs):
        answers = [item for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
        answer = read(answers[-1]["output"]) if answers else None
        item = self.decide(answer)
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def decide(self, answer):
        if answer is None:
            return self.call("plan_propose", plan=PLAN)
        if answer.get("run"):
            return say(f"The run is {answer['run']['status']}.")
        if answer.get("runId") or answer.get("executed"):
            return self.call("plan_status", planId=PLAN["id"])
        if answer.get("status") == "approved":
            return self.call("plan_execute", planId=PLAN["id"])
        if answer.get("status") == "rejected":
            return say("The person said no, so nothing was done.")
        if answer.get("status") is None:
            return self.call("plan_status", planId=PLAN["id"])
        return self.call("wait_and_look")

    def call(self, name, **arguments):
        self.calls += 1
        return ResponseFunctionToolCall(
            id=f"fc_{self.calls}", call_id=f"call_{self.calls}", type="function_call", name=name,
            arguments=json.dumps(arguments),
        )

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError("this example does not stream")


def read(output):
    """The answer of a tool, as the object it is."""
    text = output if isinstance(output, str) else json.dumps(output)
    try:
        value = json.loads(text)
    except ValueError:
        return {"text": text}
    while isinstance(value, (list, str)):
        value = value[0] if isinstance(value, list) else json.loads(value)
    if "text" in value and value.get("type") in ("text", "output_text", "input_text"):
        return read(value["text"])
    return value


def say(text):
    content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
    return ResponseOutputMessage(id="msg", type="message", role="assistant", status="completed", content=content)


async def main():
    set_tracing_disabled(True)
    program = sys.argv[1] if len(sys.argv) > 1 else "planwright"
    server = MCPServerStdio(
        params={"command": program, "args": ["mcp"], "env": dict(os.environ)},
        name="planwright",
        client_session_timeout_seconds=60,
        use_structured_content=True,
    )
    async with server:
        from agents import function_tool

        @function_tool
        async def wait_and_look() -> str:
            """Wait a second, and say where the plan stands."""
            await asyncio.sleep(1)
            result = await server.call_tool("plan_status", {"planId": PLAN["id"]})
            structured = getattr(result, "structured_content", None) or getattr(result, "structuredContent", None)
            return json.dumps(structured)

        agent = Agent(
            name="planner",
            instructions="Act through plans: plan_propose, then wait for a person, then plan_execute.",
            mcp_servers=[server],
            tools=[wait_and_look],
            model=Script(),
        )
        result = await Runner.run(agent, "Keep a note", max_turns=600)
        print(result.final_output)


asyncio.run(main())
