#!/usr/bin/env python3
"""An MCP server over stdio that misbehaves in the way its first argument names.

Standard library only, and raw JSON-RPC: whatever a client must survive can be written here byte by byte. Further
arguments are markers by which a test finds its processes again. `modern` anywhere among them makes it a server of the
current era; otherwise it is one of the earlier era.
"""

import atexit
import json
import os
import signal
import sys
import time

behaviour = sys.argv[1]
modern = "modern" in sys.argv[2:]
state_file = next((a[6:] for a in sys.argv if a.startswith("state=")), None)
out = sys.stdout.buffer
inp = sys.stdin.buffer


def raw(data):
    out.write(data)
    out.flush()


def send(message):
    raw(json.dumps(dict(jsonrpc="2.0", **message)).encode() + b"\n")


def result(ident, value):
    send({"id": ident, "result": value})


def error(ident, code, message):
    send({"id": ident, "error": {"code": code, "message": message}})


def read():
    line = inp.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def text(value, **more):
    return dict({"content": [{"type": "text", "text": value}]}, **more)


def tool(name, **more):
    return dict({"name": name, "description": "A tool.", "inputSchema": {"type": "object"}}, **more)


def times():
    """How often this server was started before, if a state file is given."""
    if not state_file:
        return 0
    count = int(open(state_file).read()) if os.path.exists(state_file) else 0
    with open(state_file, "w") as f:
        f.write(str(count + 1))
    return count


TOOLS = {
    "bad_names": [
        tool("good"), tool("with space"), tool(""), tool("x" * 129), tool("Dup"), tool("dup"), tool("twice"),
        tool("twice"), tool("caf\u00e9"), tool("zero\u200bwidth"), tool("new\nline"), {"inputSchema": {}}, 7, tool("\u0430dmin"),
    ],
    "bad_schemas": [
        tool("good"), dict(tool("remote"), inputSchema={"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}}),
        dict(tool("list"), inputSchema=[1]), {"name": "none"}, dict(tool("string"), inputSchema={"type": "string"}),
        dict(tool("file"), inputSchema={"$ref": "file:///etc/passwd"}), dict(tool("huge"), description="d" * 300_000),
        tool("out", outputSchema={"$ref": "https://example.com/"}), tool("odd_hints", annotations=7),
        tool("bad_regex", inputSchema={"type": "object", "properties": {"a": {"pattern": "("}}}),
    ],
    "breaks_schema": [tool("call", outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})],
    "text_breaks_schema": [tool("call", outputSchema={"type": "object", "required": ["n"]})],
}

restarts = times()
pages = 0
version = 0


def handshake(message):
    method, ident = message.get("method"), message.get("id")
    if method == "server/discover":
        if behaviour in ("silent_discover", "never_answers", "hears_nothing"):
            return
        if behaviour in ("late_discover", "late_both") and restarts == 0:
            time.sleep(4)
        if behaviour == "odd_discover":
            return result(ident, {})
        if modern or behaviour in ("late_discover", "late_both"):
            return result(ident, {
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {"listChanged": True}},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "hostile", "version": "1"}},
            })
        return error(ident, -32601, "Method not found")
    if method == "initialize":
        if behaviour in ("never_answers", "hears_nothing", "late_discover"):
            return
        if behaviour == "dies_at_initialize":
            sys.exit(4)
        if behaviour == "refuses":
            return error(ident, -32000, "go \x1b[31maway")
        name = "\x1b]0;owned\x07fake\u202e" if behaviour == "fake_name" else "hostile"
        result(ident, {
            "protocolVersion": "1066-10-14" if behaviour == "unknown_version" else message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": name, "version": "1"},
        })
        if behaviour == "dies_after_initialize":
            sys.exit(5)


def list_tools(message):
    global pages
    ident = message["id"]
    if behaviour == "dies_in_list":
        sys.exit(6)
    if behaviour == "list_is_no_list":
        return result(ident, {"tools": "none"})
    if behaviour == "endless_pages":
        pages += 1
        return result(ident, {"tools": [tool(f"t{pages}")], "nextCursor": f"c{pages}"})
    if behaviour == "same_page":
        pages += 1
        return result(ident, {"tools": [tool(f"t{pages}")], "nextCursor": "again"})
    if behaviour == "pages":
        pages += 1
        return result(ident, dict({"tools": [tool(f"t{pages}")]}, **({"nextCursor": str(pages)} if pages % 3 else {})))
    if behaviour == "changes_tools":
        return result(ident, {"tools": [tool("call", description=f"version {version}")] + ([tool("added")] if version else [])})
    if behaviour == "changed_after_restart":
        return result(ident, {"tools": [tool("call", description=f"start {restarts}")]})
    result(ident, {"tools": TOOLS.get(behaviour, [tool("call"), tool("again")]), "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})


def ask(method, params=None):
    """Asks the client and returns its answer. Nothing else may be under way."""
    send({"id": "from-server", "method": method, **({"params": params} if params is not None else {})})
    while True:
        message = read()
        if message.get("id") == "from-server" and "method" not in message:
            return message


def grandchild(own_session):
    """A process that ignores everything that can be ignored."""
    if os.fork() == 0:
        if own_session:
            os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(60)


def call(message):
    global version
    ident, params = message["id"], message["params"]
    meta = params.get("_meta", {})
    good = text("fine") if not modern else dict(text("fine"), resultType="complete")
    if params["name"] == "again":
        return result(ident, good)
    b = behaviour
    if b == "dies_in_call":
        os._exit(7)
    elif b == "dies_in_first_call":
        if restarts == 0:
            os._exit(7)
        result(ident, good)
    elif b == "dies_after_call":
        result(ident, good)
        os._exit(8)
    elif b in ("hangs", "ignores_sigterm", "ignores_cancel"):
        while True:
            time.sleep(60) if b != "ignores_cancel" else read()
    elif b == "garbage_around":
        raw(b"hello\n\x00\x01\x02\n{}\n[]\n{\"jsonrpc\":\"2.0\"}\nnull\n\n\n{\"id\":\n")
        result(ident, good)
        raw(b"bye\n{\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":{}}\n")
    elif b == "invalid_utf8":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}\n' % ident)
    elif b == "lone_surrogate":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\\ud800"}]}}\n' % ident)
    elif b == "nul_text":
        result(ident, text("a\x00b\x1b[2Jc"))
    elif b == "endless_line":
        while True:
            raw(b"a" * 65536)
    elif b == "gigabyte":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % ident)
        for _ in range(16384):
            raw(b"x" * 65536)
        raw(b'"}]}}\n')
    elif b == "ten_mebibytes":
        result(ident, text("x" * (10 << 20)))
    elif b == "deep":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"structuredContent":' % ident + b"[" * 100_000 + b"]" * 100_000 + b"}}\n")
    elif b == "wide":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"structuredContent":[' % ident + b"1," * 7_000_000 + b"1]}}\n")
    elif b == "wrong_id":
        result(ident + 1000, good)
        result("nonsense", good)
        send({"id": None, "result": good})
        raw(b'{"jsonrpc":"2.0","id":1.5,"result":{}}\n')
        result(ident, text("the right one"))
    elif b == "only_wrong_id":
        result(ident + 1000, good)
    elif b == "id_as_text":
        result(str(ident), good)
    elif b == "duplicate":
        result(ident, good)
        result(ident, text("second"))
        error(ident, -1, "third")
    elif b == "late":
        while read().get("method") != "notifications/cancelled":
            pass
        time.sleep(0.3)
        result(ident, text("late"))
    elif b == "both":
        send({"id": ident, "result": good, "error": {"code": 1, "message": "no"}})
    elif b == "neither":
        send({"id": ident})
    elif b == "huge_error":
        error(ident, -32602, "e" * 5_000_000)
    elif b == "odd_error":
        send({"id": ident, "error": "no"})
    elif b == "unknown_tool_error":
        error(ident, -32602, "unknown tool")
    elif b == "drips":
        step = 0
        while True:
            step += 1
            send({"method": "notifications/progress", "params": {"progressToken": meta["progressToken"], "progress": step}})
            time.sleep(0.005)
    elif b == "floods":
        chunk = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n' * 1000
        for _ in range(1000):
            raw(chunk)
        result(ident, good)
    elif b == "floods_requests":
        for number in range(100_000):
            send({"id": f"r{number}", "method": "ping"})
        result(ident, good)
    elif b == "changes_tools":
        version += 1
        for _ in range(50):
            send({"method": "notifications/tools/list_changed"})
        result(ident, good)
    elif b == "closes_stdout":
        os.close(1)
        time.sleep(60)
    elif b == "closes_stdin":
        os.close(0)
        result(ident, good)
        time.sleep(60)
    elif b == "stderr_flood":
        for _ in range(20_000):
            os.write(2, b"\x1b[31mnoise and more noise\n" * 10)
        result(ident, good)
    elif b == "asks":
        answers = {method: ask(method, params) for method, params in [
            ("ping", None), ("roots/list", None), ("sampling/createMessage", {"messages": [], "maxTokens": 1}),
            ("made/up", {"a": 1}), ("elicitation/create", {"mode": "nonsense"}), ("ping", [1, 2])]}
        result(ident, {"content": [], "structuredContent": answers})
    elif b == "elicits":
        answer = ask("elicitation/create", {"message": "Your name?", "requestedSchema": {
            "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}})
        result(ident, {"content": [], "structuredContent": answer["result"]})
    elif b == "elicits_and_hangs":
        ask("elicitation/create", {"message": "Your name?", "requestedSchema": {"type": "object", "properties": {}}})
        time.sleep(60)
    elif b == "elicits_modern":
        if "inputResponses" in params:
            return result(ident, {"resultType": "complete", "content": [], "structuredContent": {
                "state": params.get("requestState"), "responses": params["inputResponses"], "arguments": params["arguments"]}})
        result(ident, {"resultType": "input_required", "requestState": "opaque \u00e9", "inputRequests": {
            "who": {"method": "elicitation/create", "params": {"mode": "form", "message": "Your name?", "requestedSchema": {
                "type": "object", "properties": {"name": {"type": "string"}}}}},
            "page": {"method": "elicitation/create", "params": {"mode": "url", "message": "Log in", "url": "https://example.com/"}}}})
    elif b == "shares_load":
        if params.get("requestState") == "s":
            return result(ident, good)
        result(ident, {"resultType": "input_required", "requestState": "s"})
    elif b == "shares_load_for_ever":
        result(ident, {"resultType": "input_required", "requestState": "s"})
    elif b == "wants_sampling":
        result(ident, {"resultType": "input_required", "inputRequests": {"m": {"method": "sampling/createMessage", "params": {}}}})
    elif b == "url_error":
        send({"id": ident, "error": {"code": -32042, "message": "first", "data": {"elicitations": [
            {"mode": "url", "elicitationId": "1", "url": "https://example.com/", "message": "Log in"}]}}})
    elif b == "makes_task":
        result(ident, {"resultType": "task", "taskId": "1", "status": "working"})
    elif b == "is_error":
        result(ident, text("it broke", isError=True))
    elif b == "breaks_schema":
        result(ident, {"content": [], "structuredContent": {"n": "seven"}})
    elif b == "text_breaks_schema":
        result(ident, text("seven"))
    elif b == "result_is_no_object":
        result(ident, [1])
    elif b == "bad_base64":
        result(ident, {"content": [{"type": "image", "mimeType": "image/png", "data": "!!!"}]})
    elif b == "env":
        result(ident, {"content": [], "structuredContent": dict(os.environ)})
    elif b == "late_call_env":
        result(ident, good)
    else:
        result(ident, good)


if behaviour == "exits":
    sys.exit(3)
if behaviour == "exits_with_words":
    os.write(2, b"cannot find \x1b[1mthe config\n")
    sys.exit(3)
if behaviour == "dies_at_first_line":
    read()
    os._exit(1)
if behaviour == "slow_start":
    time.sleep(3)
if behaviour == "ignores_sigterm" or behaviour == "hears_nothing":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if behaviour == "hears_nothing":
    while True:
        time.sleep(60)
if behaviour in ("grandchildren", "grandchildren_die_in_call"):
    grandchild(False)
    grandchild(False)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if behaviour == "garbage_first":
    raw(b"Starting up...\nWARNING: \xff\n{\"not\": \"ours\"}\n" + b"y" * 100_000 + b"\n")
if behaviour == "early_requests":
    send({"id": "early", "method": "ping"})
    send({"id": "early2", "method": "roots/list"})
    send({"method": "notifications/message", "params": {"level": "info", "data": "early"}})
if behaviour == "endless_start":
    while True:
        raw(b"z" * 65536)
if behaviour == "stderr_at_start":
    os.write(2, b"q" * 3_000_000)
if behaviour == "last_words":
    atexit.register(lambda: os.write(2, b"I am going\n" * 20_000 + b"goodbye\n"))

while True:
    message = read()
    method = message.get("method")
    if method in ("server/discover", "initialize"):
        handshake(message)
    elif method == "tools/list":
        list_tools(message)
    elif method == "tools/call":
        if behaviour == "grandchildren_die_in_call":
            os._exit(9)
        call(message)
    elif method == "ping":
        result(message["id"], {})
