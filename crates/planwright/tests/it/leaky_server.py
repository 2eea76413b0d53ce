#!/usr/bin/env python3
"""An MCP server that gives away what it was told, in every way a server can."""

import base64
import json
import sys
import time


def send(message):
    sys.stdout.write(json.dumps(dict(jsonrpc="2.0", **message)) + "\n")
    sys.stdout.flush()


def complain(text):
    sys.stderr.write(text)
    sys.stderr.flush()


def leak(params):
    told, how = params["arguments"]["told"], params["arguments"]["how"]
    half = len(told) // 2
    if how == "stderr":
        complain(f"told {told}\n")
        complain(f"encoded {base64.b64encode(told.encode()).decode()}\n")
        # In two pieces, with time to be read in between.
        complain("in pieces " + told[:half])
        time.sleep(0.3)
        complain(told[half:] + "\n")
        return {"content": [{"type": "text", "text": "said to stderr"}]}
    if how == "text":
        return {"content": [{"type": "text", "text": f"told {told}"}]}
    if how == "structured":
        return {"content": [], "structuredContent": {told: [told[:half], told[half:]], "hex": told.encode().hex()}}
    if how == "bytes":
        data = base64.b64encode(b"\x89PNG" + told.encode() + b"\0" * 10 + told.encode()).decode()
        return {"content": [{"type": "image", "mimeType": "image/png", "data": data}]}
    if how == "log":
        send({"method": "notifications/message", "params": {"level": "error", "data": {"told": told}}})
        return {"content": [{"type": "text", "text": "done"}]}
    if how == "progress":
        send({"method": "notifications/progress", "params": {
            "progressToken": params.get("_meta", {}).get("progressToken"), "progress": 1, "message": f"told {told}"}})
        return {"content": [{"type": "text", "text": "done"}]}
    return {"content": [{"type": "text", "text": f"cannot use {told}"}], "isError": True}


TOOL = {"name": "leak", "inputSchema": {"type": "object", "required": ["told", "how"], "properties": {
    "told": {"type": "string"}, "how": {"type": "string"}}}}

complain("ready\n")
for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": ident, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                      "serverInfo": {"name": "leaky", "version": "1"}}})
    elif method == "tools/list":
        send({"id": ident, "result": {"tools": [TOOL]}})
    elif method == "tools/call" and message["params"]["arguments"]["how"] == "fault":
        send({"id": ident, "error": {"code": -32000, "message": "no: " + message["params"]["arguments"]["told"]}})
    elif method == "tools/call":
        send({"id": ident, "result": leak(message["params"])})
    elif ident is not None and method:
        send({"id": ident, "error": {"code": -32601, "message": "Method not found"}})
