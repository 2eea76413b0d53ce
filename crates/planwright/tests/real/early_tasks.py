"""A client of 2025-11-25 that wants tasks, with the MCP project's own Python SDK of that era.

early_tasks.py ORDER, where ORDER is JSON: command and args, or url and token. Prints one JSON object with everything that was seen.
"""
import asyncio
import json
import os
import sys
from datetime import timedelta

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import CallToolResult, ElicitResult, TaskStatusNotification

order = json.loads(sys.argv[1])
asked = []
told = []


async def person(context, params):
    """What the client shows to its person, who agrees to everything."""
    asked.append({"message": params.message, "meta": params.meta.model_dump() if params.meta else None})
    return ElicitResult(action="accept", content={"decision": "approve"})


async def hear(message):
    notice = getattr(message, "root", None)
    if isinstance(notice, TaskStatusNotification):
        told.append([notice.params.taskId, notice.params.status])


def connect():
    if "url" in order:
        return streamablehttp_client(order["url"], headers={"Authorization": f"Bearer {order['token']}"})
    return stdio_client(StdioServerParameters(command=order["command"], args=order["args"], env=dict(os.environ)))


def plan(name, steps):
    return {"plan": {"id": name, "title": name, "steps": steps}}


def sleep(name, milliseconds, **more):
    return {"id": name, "tool": "demo.sleep", "args": {"ms": milliseconds}, **more}


async def refused(asking):
    try:
        await asking
    except McpError as error:
        return error.error.code
    return None


async def until(tasks, task, *wanted):
    """How a task stands, once it stands like this."""
    async for status in tasks.poll_task(task):
        if status.status in wanted:
            return status.status
    return status.status


async def main():
    seen = {}
    async with connect() as streams:
        patience = timedelta(seconds=60)
        async with ClientSession(streams[0], streams[1], read_timeout_seconds=patience,
                                 elicitation_callback=person, message_handler=hear) as session:
            opened = await session.initialize()
            seen["tasks"] = opened.capabilities.tasks.model_dump(exclude_none=True)
            listed = await session.list_tools()
            seen["taskSupport"] = {tool.name: tool.execution.taskSupport for tool in listed.tools if tool.execution}
            tasks = session.experimental

            gate = sleep("gate", 1, dependsOn=["first"], approvalRequired=True)
            await session.call_tool("plan_propose", plan("gated", [sleep("first", 300), gate]))
            await session.call_tool("plan_approve", {"planId": "gated"})
            seen["askedFirst"] = len(asked)
            created = await tasks.call_tool_as_task("plan_execute", {"planId": "gated"})
            task = created.task.taskId
            seen["created"] = created.task.model_dump(mode="json")
            seen["waits"] = await until(tasks, task, "input_required")
            result = await tasks.get_task_result(task, CallToolResult)
            seen["result"] = {**(result.structuredContent or {}), "meta": result.meta, "isError": result.isError}
            seen["asked"] = asked[seen["askedFirst"]:]
            seen["ended"] = (await tasks.get_task(task)).status
            seen["cancelledLate"] = await refused(tasks.cancel_task(task))

            await session.call_tool("plan_propose", plan("long", [sleep("first", 600_000)]))
            await session.call_tool("plan_approve", {"planId": "long"})
            long = (await tasks.call_tool_as_task("plan_execute", {"planId": "long"})).task.taskId
            seen["working"] = (await tasks.get_task(long)).status
            seen["cancelled"] = (await tasks.cancel_task(long)).status
            seen["afterwards"] = (await tasks.get_task(long)).status
            seen["cancelledResult"] = (await tasks.get_task_result(long, CallToolResult)).structuredContent["status"]

            none = (await tasks.call_tool_as_task("plan_execute", {"planId": "none"})).task
            seen["noPlan"] = [none.status, (await tasks.get_task_result(none.taskId, CallToolResult)).structuredContent]
            seen["noTask"] = await refused(tasks.get_task("run_0000000000000000"))
            seen["noSupport"] = await refused(tasks.call_tool_as_task("plan_list", {}))
            seen["listed"] = [one.taskId for one in (await tasks.list_tasks()).tasks]
            seen["ids"] = [task, long, none.taskId]
            # What was told of the last one may still be on its way.
            for _ in range(100):
                if [long, "cancelled"] in told:
                    break
                await asyncio.sleep(0.1)
            seen["told"] = told
    print(json.dumps(seen))


asyncio.run(main())
