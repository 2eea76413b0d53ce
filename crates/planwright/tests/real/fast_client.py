"""A client with FastMCP, which is not the MCP project's own: lists the tools and makes the calls it is told to make.

fast_client.py ORDER, where ORDER is JSON: command, args, calls. Prints one JSON object with everything that was seen.
"""
import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

order = json.loads(sys.argv[1])


async def main():
    transport = StdioTransport(command=order["command"], args=order["args"], env=dict(os.environ), cwd=".")
    async with Client(transport) as client:
        tools = [tool.name for tool in await client.list_tools()]
        results = []
        for name, arguments in order["calls"]:
            result = await client.call_tool(name, arguments, raise_on_error=False)
            results.append({"structured": result.structured_content, "isError": bool(result.is_error)})
    print(json.dumps({"tools": tools, "results": results}))


asyncio.run(main())
