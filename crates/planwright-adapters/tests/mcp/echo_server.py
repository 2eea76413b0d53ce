#!/usr/bin/env python3
"""An MCP server over stdio that behaves. Calls run in threads, so that they can be cancelled and run side by side."""

import base64
import json
import sys
import threading

modern = "modern" in sys.argv[1:]
lock = threading.Lock()
running = {}

OBJECT = {"type": "object"}
TOOLS = [
    {"name": "echo", "title": "Echo", "description": "Says it again.", "annotations": {"readOnlyHint": True},
     "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
    {"name": "slow", "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}},
     "annotations": {"idempotentHint": True}},
    {"name": "deaf", "inputSchema": OBJECT},
    {"name": "progress", "inputSchema": OBJECT},
    {"name": "logs", "inputSchema": OBJECT},
    {"name": "seen", "inputSchema": {"type": "object", "properties": {"key": {"type": "string"}}}},
    {"name": "number", "inputSchema": OBJECT},
    {"name": "json_text", "inputSchema": OBJECT, "outputSchema": {"type": "object", "required": ["n"]}},
    {"name": "structured", "inputSchema": OBJECT, "outputSchema": OBJECT},
    {"name": "undeclared", "inputSchema": OBJECT},
    {"name": "nothing", "inputSchema": OBJECT},
    {"name": "several", "inputSchema": OBJECT},
    {"name": "image", "inputSchema": OBJECT},
    {"name": "resource", "inputSchema": OBJECT},
    {"name": "link", "inputSchema": OBJECT},
]


def send(message):
    with lock:
        sys.stdout.write(json.dumps(dict(jsonrpc="2.0", **message)) + "\n")
        sys.stdout.flush()


def text(value):
    return {"type": "text", "text": value}


def content(name, params, stop):
    args, meta = params.get("arguments", {}), params.get("_meta", {})
    png = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"\x89PNG picture").decode()}
    if name == "echo":
        return {"content": [text(args["text"])]}
    if name == "slow":
        if stop.wait(args.get("seconds", 60)):
            return None
        return {"content": [text("slept")]}
    if name == "deaf":
        threading.Event().wait(60)
        return None
    if name == "progress":
        for step in range(1, 4):
            send({"method": "notifications/progress", "params": {
                "progressToken": meta["progressToken"], "progress": step, "total": 3, "message": f"step {step}"}})
            stop.wait(0.15)
        return {"content": [text("done")]}
    if name == "logs":
        if not modern or meta.get("io.modelcontextprotocol/logLevel") == "info":
            send({"method": "notifications/message", "params": {"level": "warning", "logger": "db", "data": {"rows": 3}}})
            send({"method": "notifications/message", "params": {"level": "info", "data": "in words"}})
            send({"method": "notifications/message", "params": {"level": "loud", "data": "no such level"}})
        print("on stderr", file=sys.stderr, flush=True)
        stop.wait(0.5)
        return {"content": [text("done")]}
    if name == "seen":
        return {"content": [], "structuredContent": {"meta": meta, "arguments": args}}
    if name == "number":
        return {"content": [text("123")]}
    if name == "json_text":
        return {"content": [text('{"n": 1}')]}
    if name == "structured":
        return {"content": [text("for people")], "structuredContent": {"a": [1, None, {"b": 2}]}}
    if name == "undeclared":
        return {"content": [text("for people")], "structuredContent": {"a": 1}}
    if name == "nothing":
        return {"content": []}
    if name == "several":
        return {"content": [text("look"), png, text("done")]}
    if name == "image":
        return {"content": [png]}
    if name == "resource":
        return {"content": [{"type": "resource", "resource": {
            "uri": "file:///a", "mimeType": "application/x", "blob": base64.b64encode(b"blob").decode()}}]}
    if name == "link":
        return {"content": [{"type": "resource_link", "uri": "http://127.0.0.1:1/never", "name": "n"}]}
    return {"content": [text("unknown tool")], "isError": True}


def call(message):
    stop = running[message["id"]]
    answer = content(message["params"]["name"], message["params"], stop)
    if answer is not None:
        send({"id": message["id"], "result": dict(answer, **({"resultType": "complete"} if modern else {}))})


for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "server/discover" and modern:
        send({"id": ident, "result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "logging": {}}, "ttlMs": 0,
            "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "echo", "version": "2"}}}})
    elif method == "initialize" and not modern:
        send({"id": ident, "result": {
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}})
    elif method == "tools/list":
        send({"id": ident, "result": dict({"tools": TOOLS}, **({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if modern else {}))})
    elif method == "tools/call":
        running[ident] = threading.Event()
        threading.Thread(target=call, args=(message,), daemon=True).start()
    elif method == "notifications/cancelled":
        ident = message["params"]["requestId"]
        running[ident].set()
        if "confirms" in sys.argv:
            send({"id": ident, "error": {"code": 0, "message": "cancelled"}})
    elif ident is not None and method:
        send({"id": ident, "error": {"code": -32601, "message": "Method not found"}})
