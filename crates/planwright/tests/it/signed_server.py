#!/usr/bin/env python3
"""An MCP server over HTTP that wants a sign-in, and the one who signs people in for it. Prints its port.

It counts in the file that its argument names: `registered` for each program that is made known, `signed in`, `renewed` and `called`. A token
lasts for three seconds, and the one that renews it is good once: a second time ends the sign-in, as careful ones do.
"""

import base64
import hashlib
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

LIFE = 3
counting = threading.Lock()
clients, codes, tokens, renewals = set(), {}, {}, set()


def count(word):
    with open(sys.argv[1], "a") as log:
        log.write(word + "\n")


def grant():
    token, renewal = f"token-{len(tokens)}", f"renewal-{len(tokens)}"
    tokens[token] = time.time() + LIFE
    renewals.add(renewal)
    return {"access_token": token, "refresh_token": renewal, "token_type": "Bearer", "expires_in": LIFE}


def redeem(form):
    if form.get("client_id") not in clients:
        return None
    if form["grant_type"] == "refresh_token":
        time.sleep(0.3)
        if form["refresh_token"] not in renewals:
            renewals.clear()
            return None
        renewals.discard(form["refresh_token"])
        count("renewed")
        return grant()
    client, challenge = codes.pop(form["code"], (None, None))
    proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
    if client != form["client_id"] or proof != challenge:
        return None
    count("signed in")
    return grant()


def reply(message):
    method = message.get("method")
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "desk", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    if method == "tools/call":
        count("called")
        return {"content": [{"type": "text", "text": "seen"}]}
    return {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, document=None, headers=()):
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_DELETE(self):
        self.say(200)

    def do_GET(self):
        path = urlsplit(self.path)
        if path.path.startswith("/.well-known/oauth-protected-resource"):
            return self.say(200, {"resource": OWN + "/mcp", "authorization_servers": [OWN]})
        if path.path.startswith("/.well-known/"):
            return self.say(200, {
                "issuer": OWN, "authorization_endpoint": OWN + "/authorize", "token_endpoint": OWN + "/token",
                "registration_endpoint": OWN + "/register", "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"]})
        if path.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(path.query).items()}
            if asked["client_id"] not in clients:
                return self.say(400)
            code = f"code-{time.time_ns()}"
            codes[code] = (asked["client_id"], asked["code_challenge"])
            back = asked["redirect_uri"] + "?" + urlencode({"code": code, "state": asked["state"]})
            return self.say(302, headers=[("Location", back)])
        self.say(405)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with counting:
            if self.path == "/register":
                count("registered")
                client = f"client-{len(clients)}"
                clients.add(client)
                return self.say(201, {"client_id": client, "token_endpoint_auth_method": "none"})
            if self.path == "/token":
                form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
                granted = redeem(form)
                return self.say(200, granted) if granted else self.say(400, {"error": "invalid_grant"})
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if tokens.get(token, 0) < time.time():
            return self.say(401, {}, [("WWW-Authenticate", f'Bearer resource_metadata="{OWN}/.well-known/oauth-protected-resource"')])
        message = json.loads(body)
        if "id" not in message:
            return self.say(202)
        self.say(200, {"jsonrpc": "2.0", "id": message["id"], "result": reply(message)})


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
OWN = f"http://127.0.0.1:{server.server_port}"
print(server.server_port, flush=True)
server.serve_forever()
