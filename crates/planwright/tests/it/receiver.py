"""Takes webhooks, and checks their signatures with nothing of the program that sent them.

Usage: receiver.py LOG. Prints its port; writes one JSON line per request to LOG. What it answers depends on the path.
"""

import base64
import hashlib
import hmac
import http.server
import json
import os
import sys
import threading
import time

LOG = open(sys.argv[1], "a", buffering=1)
KEYS = [base64.b64decode(key.removeprefix("whsec_")) for key in os.environ["HOOK_KEYS"].split()]
LOCK = threading.Lock()
SEEN = {}


def verified(headers, body):
    seconds = headers.get("webhook-timestamp", "")
    if not seconds.isdigit() or abs(time.time() - int(seconds)) > 300:
        return 0
    signed = headers.get("webhook-id", "").encode() + b"." + seconds.encode() + b"." + body
    given = [part.partition(",")[2] for part in headers.get("webhook-signature", "").split(" ")]
    expected = [base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in KEYS]
    return sum(any(hmac.compare_digest(one, other) for other in given) for one in expected)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with LOCK:
            SEEN[self.path] = SEEN.get(self.path, 0) + 1
            number = SEEN[self.path]
            record = {
                "path": self.path,
                "at": time.time(),
                "id": self.headers.get("webhook-id"),
                "verified": verified(self.headers, body),
                "contentType": self.headers.get("content-type"),
                "headers": dict(self.headers),
                "bytes": len(body),
                "body": json.loads(body),
            }
            LOG.write(json.dumps(record) + "\n")
        if self.path == "/slow":
            time.sleep(0.5)
        headers, status = {}, 204
        if self.path == "/gone":
            status = 410
        elif self.path == "/moved":
            status, headers = 302, {"location": "/stolen"}
        elif self.path == "/busy" and number == 1:
            status, headers = 429, {"retry-after": "7"}
        elif self.path == "/broken":
            status = 500
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
