#!/usr/bin/env python3
"""An MCP server whose calls are seen from outside: one line in `charges.txt` each, before it answers."""

import json
import sys
import time

TOOL = {"name": "charge", "inputSchema": {"type": "object", "required": ["account", "token"], "properties": {
    "account": {"type": "string"}, "token": {"type": "string"}, "seconds": {"type": "number"}}}}


def send(message):
    sys.stdout.write(json.dumps(dict(jsonrpc="2.0", **message)) + "\n")
    sys.stdout.flush()


def charge(arguments):
    with open("charges.txt", "a") as charges:
        charges.write(f"{arguments['account']} {arguments['token']}\n")
    time.sleep(arguments.get("seconds", 0))
    return {"content": [{"type": "text", "text": f"charged with {arguments['token']}"}]}


for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": ident, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                      "serverInfo": {"name": "bank", "version": "1"}}})
    elif method == "tools/list":
        send({"id": ident, "result": {"tools": [TOOL]}})
    elif method == "tools/call":
        send({"id": ident, "result": charge(message["params"]["arguments"])})
    elif ident is not None:
        send({"id": ident, "error": {"code": -32601, "message": "unknown"}})
