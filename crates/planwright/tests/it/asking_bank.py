#!/usr/bin/env python3
"""An MCP server of the earlier era whose `pay` says how far it is and asks a person in the middle of its work.

One line in `paid.txt` is written before the question: a call that is made twice is seen. Its second question has the same
words as the first one.
"""

import json
import sys
import time

TOOL = {"name": "pay", "inputSchema": {"type": "object", "required": ["account"], "properties": {
    "account": {"type": "string"}, "token": {"type": "string"}, "questions": {"type": "integer"}, "seconds": {"type": "number"}}}}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def send(message):
    sys.stdout.write(json.dumps(dict(jsonrpc="2.0", **message)) + "\n")
    sys.stdout.flush()


def ask(number):
    send({"id": f"q{number}", "method": "elicitation/create", "params": {"message": "Who signs?", "requestedSchema": SCHEMA}})
    for said in sys.stdin:
        reply = json.loads(said)
        if reply.get("id") == f"q{number}" and "method" not in reply:
            return reply.get("result", {"action": "error"})
    sys.exit(0)


def pay(params):
    arguments, token = params["arguments"], params.get("_meta", {}).get("progressToken")
    with open("paid.txt", "a") as paid:
        paid.write(arguments["account"] + "\n")
    count = arguments.get("questions", 0)
    for part in range(1, 31):
        if token is not None:
            send({"method": "notifications/progress", "params": {
                "progressToken": token, "progress": part, "total": 30, "message": f"part {part} with t0ken-0f-the-bank"}})
        send({"method": "notifications/message", "params": {"level": "warning", "data": f"line {part} of t0ken-0f-the-bank"}})
        time.sleep(arguments.get("seconds", 0) / 30)
    said = [ask(number) for number in range(count)]
    names = [answer.get("content", {}).get("name", answer["action"]) for answer in said]
    return {"content": [{"type": "text", "text": "signed by " + ", ".join(names)}]}


for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": ident, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "logging": {}},
                                      "serverInfo": {"name": "desk", "version": "1"}}})
    elif method == "tools/list":
        send({"id": ident, "result": {"tools": [TOOL]}})
    elif method == "tools/call":
        send({"id": ident, "result": pay(message["params"])})
    elif ident is not None and method is not None:
        send({"id": ident, "result": {}})
