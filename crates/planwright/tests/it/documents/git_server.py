#!/usr/bin/env python3
"""An MCP server with the name of the one that the documents speak of."""

import json
import sys

TOOLS = [
    {
        "name": name,
        "description": words,
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    }
    for name, words in [("git_log", "Lists commits."), ("git_status", "Lists changed files.")]
]


def send(message):
    sys.stdout.write(json.dumps(dict(jsonrpc="2.0", **message)) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": ident, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                      "serverInfo": {"name": "git", "version": "1"}}})
    elif method == "tools/list":
        send({"id": ident, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        send({"id": ident, "result": {"content": [{"type": "text", "text": "nothing to tell"}]}})
    elif ident is not None and method:
        send({"id": ident, "error": {"code": -32601, "message": "Method not found"}})
