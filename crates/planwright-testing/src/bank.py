#!/usr/bin/env python3
"""An MCP server over stdio that one connection of several plans shares: `pay` has an effect, `read` may answer too much.

The first argument is the log of effects: one line for each payment that happened. The second is the log of starts: one
line for each process. A payment is answered once a `read` was answered beside it, so that the two are always in flight
together. How `read` answers is its argument `shape`.
"""

import json
import os
import sys

effects, starts = sys.argv[1], sys.argv[2]
out = sys.stdout.buffer
big = b"x" * (17 << 20)
paying = None
reading = None
settled = False


def note(path, line):
    with open(path, "a") as log:
        log.write(line + "\n")


def raw(*parts):
    for part in parts:
        out.write(part)
    out.flush()


def send(message):
    raw(json.dumps(dict(jsonrpc="2.0", **message)).encode(), b"\n")


def result(ident, text):
    send({"id": ident, "result": {"content": [{"type": "text", "text": text}]}})


def large(ident, shape):
    number = json.dumps(ident).encode()
    content = b'{"content":[{"type":"text","text":"' + big + b'"}]}'
    if shape == "head":
        raw(b'{"jsonrpc":"2.0","id":', number, b',"result":', content, b"}\n")
    elif shape == "tail":
        raw(b'{"result":', content, b',"jsonrpc":"2.0" , "id" : ', number, b" }\n")
    elif shape == "text":
        raw(b'{"jsonrpc":"2.0","\\u0069d":"', number, b'","result":', content, b"}\n")
    elif shape == "inner":
        raw(b'{"a":{"id":1,"result":2},"b":"\\"id\\":7","result":{"id":3,"v":"', big, b'"},"id":', number, b"}\n")
    elif shape == "deep":
        raw(b'{"jsonrpc":"2.0","result":', b"[" * 100_000, b"]" * 100_000, b',"id":', number, b"}\n")
    elif shape == "wide":
        raw(b'{"jsonrpc":"2.0","id":', number, b',"result":[', b"1," * 2_000_000, b"1]}\n")
    elif shape == "error":
        raw(b'{"jsonrpc":"2.0","id":', number, b',"error":{"code":-32602,"message":"', big, b'"}}\n')
    elif shape == "unnamed":
        raw(b'{"jsonrpc":"2.0","result":', content, b"}\n")
    elif shape == "two_ids":
        raw(b'{"jsonrpc":"2.0","id":', number, b',"result":', content, b',"id":0}\n')
    elif shape == "endless":
        raw(b'{"jsonrpc":"2.0","id":', number, b',"result":"')
        while True:
            raw(big)
    elif shape == "notice":
        raw(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"', big, b'"}}\n')
        result(ident, "read")
    elif shape == "noise":
        raw(big, b"\n")
        result(ident, "read")
    elif shape == "question":
        raw(b'{"jsonrpc":"2.0","id":', number, b',"method":"elicitation/create","params":{"message":"', big, b'"}}\n')
        while True:
            said = json.loads(sys.stdin.buffer.readline())
            if "method" not in said:
                break
        result(ident, json.dumps(sorted(said)))
    else:
        result(ident, "read")


def settle():
    global paying, reading, settled
    if settled or paying is None or reading is None:
        return
    settled = True
    large(*reading)
    result(paying, "paid")
    paying = reading = None


def call(message):
    global paying, reading
    ident, params = message["id"], message["params"]
    args = params.get("arguments", {})
    if params["name"] == "pay":
        note(effects, "paid")
        if args.get("shape"):
            return large(ident, args["shape"])
        if settled or args.get("alone"):
            return result(ident, "paid")
        paying = ident
    elif settled or args.get("alone"):
        return large(ident, args.get("shape"))
    else:
        reading = (ident, args.get("shape"))
    settle()


note(starts, str(os.getpid()))
takes = {"type": "object", "properties": {"shape": {"type": "string"}, "alone": {"type": "boolean"}}}
TOOLS = [
    {"name": "pay", "description": "Pays.", "inputSchema": takes},
    {"name": "read", "description": "Reads.", "inputSchema": takes, "annotations": {"readOnlyHint": True}},
]
for line in sys.stdin.buffer:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": ident, "result": {
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "bank", "version": "1"}}})
    elif method == "tools/list":
        send({"id": ident, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        call(message)
    elif method == "ping":
        send({"id": ident, "result": {}})
    elif ident is not None and method is not None:
        send({"id": ident, "error": {"code": -32601, "message": "Method not found"}})
