"""A client with the MCP project's own Python SDK that makes the calls it is told to make.

gateway_client.py ORDER, where ORDER is JSON: command and args, or url and token; era, answer (what the person says to every question), calls
(pairs of a tool and its arguments), parallel, model (what the client's model says, if it has one). Prints one JSON object with everything that was seen.
"""
import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp_types import CreateMessageResult, ElicitResult, TextContent

order = json.loads(sys.argv[1])
asked = []
progress = []
sampled = []
logged = []


async def person(context, params):
    """What the client shows to its person, and what the person answers."""
    asked.append(params.message)
    answer = order["answer"]
    if isinstance(answer, dict):
        decided = {"decision": "approve"} if "digest sha256:" in params.message else answer
        return ElicitResult(action="accept", content=decided)
    if answer == "decline":
        return ElicitResult(action="decline")
    return ElicitResult(action="accept", content={"decision": answer})


async def model(context, params):
    """What the client's model says to what a server asks it."""
    sampled.append(params.messages[0].content.text)
    return CreateMessageResult(role="assistant", model="test", content=TextContent(type="text", text=order["model"]))


async def hear_log(params):
    logged.append(params.data)


async def hear(done, total, message):
    progress.append([done, total, message])


async def main():
    seen = {}
    if "url" in order:
        with_token = create_mcp_http_client(headers={"Authorization": f"Bearer {order['token']}"})
        server = streamable_http_client(order["url"], http_client=with_token)
    else:
        server = StdioServerParameters(command=order["command"], args=order["args"], cwd=".", env=dict(os.environ))
    callback = None if order["answer"] is None else person
    more = {}
    if "model" in order:
        more["sampling_callback"] = model
    if "level" in order:
        more["logging_callback"] = hear_log
        more["log_level"] = order["level"]
    async with Client(server, mode=order["era"], elicitation_callback=callback, **more) as client:
        async def call(name, arguments):
            try:
                result = await client.call_tool(name, arguments, progress_callback=hear)
            except Exception as problem:  # the SDK raises what the server refused
                return {"raised": str(problem)}
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)

        async def read(what):
            try:
                return (await what).model_dump(mode="json", by_alias=True, exclude_none=True)
            except Exception as problem:
                return {"raised": str(problem)}

        listed = await client.list_tools()
        seen["tools"] = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
        if order.get("parallel"):
            seen["results"] = await asyncio.gather(*(call(name, args) for name, args in order["calls"]))
        else:
            seen["results"] = [await call(name, args) for name, args in order["calls"]]
        if order.get("reads"):
            seen["resources"] = await read(client.list_resources())
            seen["prompts"] = await read(client.list_prompts())
            seen["read"] = [await read(client.read_resource(uri)) for uri in order["reads"]]
            seen["prompt"] = await read(client.get_prompt(*order["prompt"]))
    seen["asked"] = asked
    seen["sampled"] = sampled
    seen["logged"] = logged
    seen["progress"] = progress
    print(json.dumps(seen))


asyncio.run(main())
