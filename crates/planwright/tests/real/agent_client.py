"""An agent with the MCP project's own Python SDK: proposes, repairs, asks for approval, runs, reads.

agent_client.py PROGRAM MODE ANSWER: prints one JSON object with everything that was seen.
"""
import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

program, mode, answer = sys.argv[1:4]
asked = []


async def person(context, params):
    """What the client shows to its person, and what the person answers."""
    asked.append(params.message)
    if answer == "approve":
        return ElicitResult(action="accept", content={"decision": "approve"})
    if answer == "yes":
        return ElicitResult(action="accept", content={"decision": "yes"})
    if answer == "reject":
        return ElicitResult(action="accept", content={"decision": "reject", "comment": "not today"})
    return ElicitResult(action="decline")


def plan(tool):
    return {"id": "note", "title": "Keep a note", "steps": [
        {"id": "write", "tool": tool, "args": {"path": "note.txt", "content": "from an agent"}}]}


async def main():
    seen = {}
    server = StdioServerParameters(command=program, args=["mcp"], cwd=".", env=dict(os.environ))
    callback = None if answer == "absent" else person
    async with Client(server, mode=mode, elicitation_callback=callback) as client:
        async def call(name, **arguments):
            result = await client.call_tool(name, arguments)
            return {**(result.structured_content or {}), "isError": bool(result.is_error)}

        listed = await client.list_tools()
        seen["tools"] = [tool.name for tool in listed.tools]
        seen["broken"] = await call("plan_propose", plan=plan("local.write_fil"))
        seen["proposed"] = await call("plan_propose", plan=plan("local.write_file"))
        seen["approved"] = await call("plan_approve", planId="note")
        seen["executed"] = await call("plan_execute", planId="note")
        seen["status"] = await call("plan_status", planId="note")
        read = await client.read_resource("plan://note")
        seen["resource"] = read.contents[0].text
        seen["prompt"] = (await client.get_prompt("plan", {"goal": "tidy up"})).messages[0].content.text
        seen["unknown"] = await call("plan_get", planId="missing")
    seen["asked"] = asked
    print(json.dumps(seen))


asyncio.run(main())
