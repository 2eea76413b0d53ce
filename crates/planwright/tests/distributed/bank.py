"""An MCP server whose calls are seen from outside: a line in a file when a call begins, which is its effect.

The file is the first argument. Calls are carried out at the same time.
"""

import json
import os
import sys
import threading
import time

LEDGER = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
SCHEMA = {"type": "object", "required": ["account"], "properties": {
    "account": {"type": "string"}, "milliseconds": {"type": "integer"}}}
TOOLS = [
    {"name": "pay", "inputSchema": SCHEMA},
    {"name": "transfer", "inputSchema": SCHEMA},
    {"name": "look", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}},
]
WRITING = threading.Lock()


def send(message):
    with WRITING:
        sys.stdout.write(json.dumps(dict(jsonrpc="2.0", **message)) + "\n")
        sys.stdout.flush()


def carry_out(ident, params):
    arguments = params["arguments"]
    key = params.get("_meta", {}).get("planwright/idempotencyKey", "")
    line = {"at": time.time(), "tool": params["name"], "account": arguments["account"], "key": key, "worker": os.getppid()}
    os.write(LEDGER, (json.dumps(line) + "\n").encode())
    time.sleep(arguments.get("milliseconds", 0) / 1000)
    send({"id": ident, "result": {"content": [{"type": "text", "text": "done"}]}})


for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        send({"id": ident, "result": {"protocolVersion": version, "capabilities": {"tools": {}},
                                      "serverInfo": {"name": "bank", "version": "1"}}})
    elif method == "tools/list":
        send({"id": ident, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        threading.Thread(target=carry_out, args=(ident, message["params"]), daemon=True).start()
    elif method == "ping":
        send({"id": ident, "result": {}})
    elif ident is not None and method is not None:
        send({"id": ident, "error": {"code": -32601, "message": "Method not found"}})
# What was begun counts: the worker is gone, and the call that it made is not taken back.
os._exit(0)
