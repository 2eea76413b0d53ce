"""A shop of the earlier era, on the library as it was: it asks in the middle of its work.

Every effect adds one line to the file named on the command line, so that effects can be counted from outside.
"""

import sys

from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

server = FastMCP("shop")
effects = sys.argv[1]


class Buyer(BaseModel):
    name: str


def effect(line: str) -> None:
    with open(effects, "a", encoding="utf-8") as file:
        file.write(line + "\n")


@server.tool()
async def order(item: str, ctx: Context) -> str:
    """Reserves something, asks for whom, and orders it. Says nothing about itself, so it may do anything."""
    effect(f"reserved {item}")
    answer = await ctx.elicit(message=f"Who orders {item}?", schema=Buyer)
    if answer.action != "accept":
        return f"not ordered: {answer.action}"
    effect(f"ordered {item} for {answer.data.name}")
    return f"ordered for {answer.data.name}"


@server.tool(structured_output=False)
async def recite(lines: int) -> str:
    """Leaves one line, and says more than anyone reads."""
    effect("recited")
    return "x" * 1024 * lines


server.run()
