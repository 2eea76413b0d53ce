#!/usr/bin/env python3
"""An MCP server over streamable HTTP. Arguments: era, shape of answers (json or sse), behaviour. Prints its port."""

import json
import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

era, shape, behaviour = sys.argv[1:4]
sessions = set()
answers = queue.Queue()
cut = threading.Event()
counts = {"session": 0, "call": 0, "cancelled": 0}
TOOLS = [{"name": "call", "inputSchema": {"type": "object", "properties": {
    "region": {"type": "string", "x-mcp-header": "Region"}}}},
    {"name": "again", "inputSchema": {"type": "object"}}]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def plain(self, status, body=b"", kind="text/plain", headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.plain(405)

    def do_DELETE(self):
        sessions.discard(self.headers.get("Mcp-Session-Id"))
        self.plain(200)

    def begin_stream(self, headers=()):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True

    def event(self, message):
        self.wfile.write(b"event: message\ndata: " + json.dumps(dict(jsonrpc="2.0", **message)).encode() + b"\n\n")
        self.wfile.flush()

    def answer(self, message, headers=(), before=()):
        if shape == "sse":
            self.begin_stream(headers)
            for event in before:
                self.event(event)
            self.event(message)
        else:
            body = json.dumps(dict(jsonrpc="2.0", **message)).encode()
            self.plain(200, body, "application/json", headers)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if behaviour == "redirect_elsewhere":
            return self.plain(307, headers=[("Location", "http://127.0.0.2:1/mcp")])
        if behaviour == "redirect_here" and self.path == "/mcp":
            return self.plain(307, headers=[("Location", "/mcp/")])
        if behaviour == "unauthorized":
            return self.plain(401, b"who are you?", headers=[("WWW-Authenticate", "Bearer")])
        if behaviour == "wants_header" and self.headers.get("Authorization") != "Bearer secret":
            return self.plain(403, b"no")
        message = json.loads(body)
        method, ident = message.get("method"), message.get("id")
        meta = (message.get("params") or {}).get("_meta", {})
        if method == "server/discover":
            if era == "legacy":
                return self.plain(400, b"Bad Request: no session")
            return self.answer({"id": ident, "result": {
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": behaviour == "changes_tools"}}, "ttlMs": 0,
                "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "web", "version": "2"}}}})
        if method == "initialize":
            counts["session"] += 1
            session = f"session-{counts['session']}"
            sessions.add(session)
            return self.answer({"id": ident, "result": {
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}},
                [("Mcp-Session-Id", session)])
        if era == "legacy" and self.headers.get("Mcp-Session-Id") not in sessions:
            return self.plain(404, b"no such session")
        if method == "subscriptions/listen":
            self.begin_stream()
            tagged = {"_meta": {"io.modelcontextprotocol/subscriptionId": ident}}
            self.event({"method": "notifications/subscriptions/acknowledged", "params": dict(tagged, notifications={"toolsListChanged": True})})
            while not TOOLS[2:]:
                time.sleep(0.05)
            self.event({"method": "notifications/tools/list_changed", "params": tagged})
            time.sleep(60)
            return
        if era == "modern" and (self.headers.get("Mcp-Method") != method or "io.modelcontextprotocol/protocolVersion" not in meta):
            return self.plain(400, json.dumps({"jsonrpc": "2.0", "id": ident, "error": {"code": -32020, "message": "mismatch"}}).encode(), "application/json")
        if method is None:
            answers.put(message)
            return self.plain(202)
        if ident is None:
            counts["cancelled"] += method == "notifications/cancelled"
            return self.plain(202)
        if method == "tools/list":
            return self.answer({"id": ident, "result": {"tools": TOOLS, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}})
        if method == "tools/call" and message["params"]["name"] == "call":
            return self.call(ident, message, meta)
        self.answer({"id": ident, "result": {"content": [{"type": "text", "text": json.dumps(counts)}], "resultType": "complete"}})

    def call(self, ident, message, meta):
        counts["call"] += 1
        result = {"content": [{"type": "text", "text": "fine"}], "resultType": "complete"}
        if behaviour == "expires" and counts["call"] == 1:
            sessions.clear()
            return self.plain(404, b"no such session")
        if behaviour.startswith("forgets") and counts["call"] == 1:
            sessions.clear()
            said = "Bad Request: No valid session ID provided" if behaviour == "forgets" else "Bad Request: Server not initialized"
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": said}}
            return self.plain(400, json.dumps(error).encode(), "application/json")
        if behaviour in ("status_500", "status_429", "status_400"):
            return self.plain(int(behaviour[7:]), b"sorry")
        if behaviour == "error_in_400":
            return self.plain(400, json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "bad"}}).encode(), "application/json")
        if behaviour == "html":
            return self.plain(200, b"<html>", "text/html")
        if behaviour == "dies":
            self.begin_stream()
            return
        if behaviour == "elicits":
            self.begin_stream()
            self.event({"id": "e1", "method": "elicitation/create", "params": {"message": "Your name?", "requestedSchema": {
                "type": "object", "properties": {"name": {"type": "string"}}}}})
            answer = answers.get(timeout=30)["result"]
            return self.event({"id": ident, "result": {"content": [], "structuredContent": answer}})
        if behaviour == "changes_tools":
            TOOLS.append({"name": "added", "inputSchema": {"type": "object"}})
        if behaviour == "hangs":
            self.begin_stream()
            try:
                for _ in range(600):
                    self.wfile.write(b": still here\n\n")
                    self.wfile.flush()
                    time.sleep(0.05)
            except OSError:
                counts["closed"] = counts.get("closed", 0) + 1
            return
        if behaviour == "huge_beside" and counts["call"] == 1:
            cut.wait(30)
        elif behaviour in ("huge", "huge_beside"):
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if shape == "json" else "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            try:
                self.wfile.write(b'{"jsonrpc":"2.0"' if shape == "json" else b"data: ")
                for _ in range(16384):
                    self.wfile.write(b"x" * 65536)
            except OSError:
                pass
            cut.set()
            return
        if behaviour == "headers":
            result = {"content": [], "structuredContent": {k.lower(): v for k, v in self.headers.items()}, "resultType": "complete"}
        progress = {"method": "notifications/progress", "params": {"progressToken": meta.get("progressToken"), "progress": 1}}
        log = {"method": "notifications/message", "params": {"level": "error", "data": "of this call"}}
        self.answer({"id": ident, "result": result}, before=[progress, log])


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
server.serve_forever()
