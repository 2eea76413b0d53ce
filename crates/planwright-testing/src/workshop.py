"""A server of the tests' own, on a library nobody here wrote: structured output, slow effects, questions.

Every call that has an effect adds one line to the file named on the command line, so that effects can be counted from
outside. With a port after it, the server listens there instead of on its standard input.
"""

import asyncio
import base64
import os
import sys
from dataclasses import dataclass

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult
from fastmcp.utilities.types import Image

server = FastMCP("workshop")
effects = sys.argv[1]


@dataclass
class Measure:
    word: str
    letters: int


def effect(line: str) -> None:
    with open(effects, "a", encoding="utf-8") as file:
        file.write(line + "\n")


@server.tool(annotations={"readOnlyHint": True})
def measure(word: str) -> Measure:
    """Counts the letters of a word."""
    return Measure(word, len(word))


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@server.tool(annotations={"readOnlyHint": True})
def photograph() -> ToolResult:
    """Takes a picture, and says how wide it is beside it."""
    picture = Image(data=PIXEL, format="png").to_image_content()
    return ToolResult(content=[picture], structured_content={"width": 1})


@server.tool(annotations={"readOnlyHint": True})
def weigh_file(path: str) -> str:
    """Weighs a file."""
    with open(path, "rb") as file:
        return f"{os.path.splitext(path)[1]} {file.read() == PIXEL}"


@server.tool(annotations={"readOnlyHint": True})
def weigh_data(image_base64: str) -> str:
    """Weighs what is sent."""
    return str(base64.b64decode(image_base64) == PIXEL)


@server.tool
async def work(name: str, steps: int, milliseconds: int, ctx: Context) -> str:
    """Works for a while, says how far it is, and leaves one line. Says nothing about itself, so it may do anything."""
    effect(name)
    for step in range(steps):
        await asyncio.sleep(milliseconds / 1000)
        await ctx.report_progress(step + 1, steps, f"shaving {name}")
    return f"{name} is done"


@server.tool(annotations={"idempotentHint": True, "destructiveHint": False})
async def polish(name: str, milliseconds: int) -> str:
    """Can be done twice."""
    await asyncio.sleep(milliseconds / 1000)
    effect(name)
    return f"{name} shines"


@server.tool
async def paint(ctx: Context) -> str | mcp_types.InputRequiredResult:
    """Asks a person for the colour before it does anything."""
    answers = ctx.input_responses or {}
    answer = answers.get("colour")
    if answer is None:
        question = mcp_types.ElicitRequest(
            params=mcp_types.ElicitRequestFormParams(
                message="Which colour?",
                requested_schema={
                    "type": "object",
                    "properties": {"colour": {"type": "string", "enum": ["red", "green"]}},
                    "required": ["colour"],
                },
            )
        )
        return mcp_types.InputRequiredResult(input_requests={"colour": question}, request_state="asked")
    if answer.action != "accept":
        return f"not painted: {answer.action}"
    effect(f"painted {answer.content['colour']}")
    return f"painted {answer.content['colour']}"


if len(sys.argv) > 2:
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
else:
    server.run(show_banner=False)
