"""An MCP server with one tool, which leaves a line in a file and takes its time before and after it.

The file is the first argument. Calls are answered one after the other.
"""

import json
import sys
import time

LEDGER = sys.argv[1]
NOTE = {
    "name": "note",
    "description": "Leaves a line. Says nothing about itself, so it may do anything.",
    "inputSchema": {
        "type": "object",
        "properties": {"line": {"type": "string"}, "milliseconds": {"type": "integer"}},
        "required": ["line"],
    },
}


def send(message):
    sys.stdout.write(json.dumps(dict(jsonrpc="2.0", **message)) + "\n")
    sys.stdout.flush()


def note(arguments):
    pause = arguments.get("milliseconds", 0) / 2000
    time.sleep(pause)
    with open(LEDGER, "a", encoding="utf-8") as ledger:
        ledger.write(arguments["line"] + "\n")
    time.sleep(pause)
    return {"content": [{"type": "text", "text": "noted"}]}


for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "ledger", "version": "1"}
        send({"id": ident, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        send({"id": ident, "result": {"tools": [NOTE]}})
    elif method == "tools/call":
        send({"id": ident, "result": note(message["params"].get("arguments", {}))})
    elif method == "ping":
        send({"id": ident, "result": {}})
    elif ident is not None and method is not None:
        send({"id": ident, "error": {"code": -32601, "message": "Method not found"}})
