"""A coding agent without a model: it takes the command line and the configuration of the real program whose name is its first
argument, connects to the MCP server that is configured there as the real one does, with the MCP project's own Python SDK, does what
its order says, and prints what the real program prints. A command line that the real program would not take ends it with 64.

The order is JSON in STANDIN_ORDER: `era`, `calls` (pairs of a tool and its arguments), and `tell`, a file for what was seen.
"""
import argparse
import asyncio
import json
import os
import re
import shlex
import sys
import tomllib
import urllib.error
import urllib.request

from mcp import Client, StdioServerParameters

kind = sys.argv[1]
order = json.loads(os.environ["STANDIN_ORDER"])


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"unknown command line: {message}", file=sys.stderr)
        sys.exit(64)


def need(condition, what):
    if not condition:
        print(f"not as documented: {what}", file=sys.stderr)
        sys.exit(64)


def expand(text, pattern):
    """References to variables, as the program resolves them in its configuration."""
    return re.sub(pattern, lambda found: os.environ[found.group(1)], text)


def claude(args):
    parser = Parser(allow_abbrev=False)
    parser.add_argument("-p", "--print", action="store_true", required=True)
    parser.add_argument("--output-format", choices=["text", "json", "stream-json"])
    parser.add_argument("--no-session-persistence", action="store_true")
    parser.add_argument("--mcp-config", nargs="+")
    parser.add_argument("--allowedTools", "--allowed-tools", nargs="+")
    parser.add_argument("--strict-mcp-config", action="store_true")
    parser.add_argument("--tools", nargs="+")
    parser.add_argument("--permission-mode", choices=["acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan"])
    parser.add_argument("--setting-sources")
    parser.add_argument("--disable-slash-commands", action="store_true")
    parser.add_argument("--model")
    given = parser.parse_args(args)
    need(given.output_format == "json", "JSON")
    need(given.strict_mcp_config and given.tools == [""] and given.setting_sources == "", "own tools, servers and settings are off")
    need(given.allowedTools == ["mcp__planwright__*"], "the tools of the step are allowed")
    servers = json.load(open(given.mcp_config[0]))["mcpServers"]
    need(list(servers) == ["planwright"] and servers["planwright"]["type"] == "stdio", "one server")
    server = servers["planwright"]
    env = {name: expand(value, r"\$\{(\w+)\}") for name, value in server["env"].items()}
    return server["command"], server["args"], {**os.environ, **env}


def codex(args):
    parser = Parser(allow_abbrev=False)
    parser.add_argument("command", choices=["exec"])
    for flag in ["--json", "--ephemeral", "--skip-git-repo-check", "--strict-config", "--ignore-user-config", "--ignore-rules"]:
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--color", choices=["always", "never", "auto"])
    parser.add_argument("-c", "--config", action="append", default=[])
    parser.add_argument("--disable", action="append", default=[])
    parser.add_argument("-s", "--sandbox", choices=["read-only", "workspace-write", "danger-full-access"])
    parser.add_argument("-m", "--model")
    parser.add_argument("prompt")
    given = parser.parse_args(args)
    need(given.prompt == "-" and given.json, "the prompt comes on standard input, JSON goes out")
    need({"shell_tool", "unified_exec", "view_image", "hooks"} <= set(given.disable), "own tools are off")
    need(given.sandbox == "read-only" and given.ignore_user_config, "read-only, without the user's servers")
    # The program parses each value as TOML.
    config = tomllib.loads("\n".join(given.config))
    need(config["approval_policy"] == "never" and config["web_search"] == "disabled", "nothing is asked or searched")
    server = config["mcp_servers"]["planwright"]
    need(server["default_tools_approval_mode"] == "approve", "the run asks, not the program")
    passed = ["PATH", "HOME", "LANG", *server["env_vars"]]
    return server["command"], server["args"], {name: os.environ[name] for name in passed if name in os.environ}


def gemini(args):
    parser = Parser(allow_abbrev=False)
    parser.add_argument("-o", "--output-format", choices=["text", "json", "stream-json"])
    parser.add_argument("--allowed-mcp-server-names", nargs="+")
    parser.add_argument("-e", "--extensions", nargs="+")
    parser.add_argument("--approval-mode", choices=["default", "auto_edit", "yolo", "plan"])
    parser.add_argument("--admin-policy", nargs="+")
    parser.add_argument("-m", "--model")
    given = parser.parse_args(args)
    need(given.output_format == "json" and given.extensions == ["none"], "JSON, no extensions")
    need(os.environ.get("GEMINI_CLI_TRUST_WORKSPACE") == "true", "settings of an untrusted folder do not count")
    rules = tomllib.load(open(given.admin_policy[0], "rb"))["rule"]
    need({"toolName": "*", "decision": "deny", "priority": 1} in rules, "all other tools are denied")
    need({"toolName": "*", "mcpName": "planwright", "decision": "allow", "priority": 999} in rules, "those of the step are allowed")
    settings = json.load(open(".gemini/settings.json"))
    need(settings["tools"] == {"core": ["none"]}, "no tool of its own")
    server = settings["mcpServers"]["planwright"]
    need(given.allowed_mcp_server_names == ["planwright"], "one server")
    # It hands on what is named, and leaves out what looks like a secret.
    env = {name: expand(value, r"\$(\w+)") for name, value in server["env"].items()}
    safe = {name: value for name, value in os.environ.items() if "TOKEN" not in name}
    return server["command"], server["args"], {**safe, **env}


def goose(args):
    parser = Parser(allow_abbrev=False)
    parser.add_argument("command", choices=["run"])
    for flag in ["--no-session", "--no-profile", "-q", "--quiet"]:
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--output-format", choices=["text", "json", "stream-json"])
    parser.add_argument("--with-extension", action="append")
    parser.add_argument("-i", "--instructions")
    parser.add_argument("--model")
    given = parser.parse_args(args)
    need(given.output_format == "json" and given.quiet and given.instructions == "-", "JSON, the prompt on standard input")
    need(given.no_profile and os.environ.get("GOOSE_MODE") == "auto", "no extension but ours")
    command, *args = shlex.split(given.with_extension[0])
    return command, args, dict(os.environ)


def tell_result(message):
    """What the program prints at the end."""
    if kind == "claude":
        print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": message, "total_cost_usd": 0.00035,
                          "usage": {"input_tokens": 30, "output_tokens": 10}, "modelUsage": {"stand-in": {}}}))
    elif kind == "codex":
        print(json.dumps({"type": "turn.started"}))
        print(json.dumps({"type": "item.completed", "item": {"type": "agent_message", "text": message}}))
        print(json.dumps({"type": "turn.completed", "usage": {"input_tokens": 30, "cached_input_tokens": 0, "output_tokens": 10}}))
    elif kind == "gemini":
        tokens = {"prompt": 30, "candidates": 10, "thoughts": 0, "cached": 0, "tool": 0}
        print(json.dumps({"response": message, "stats": {"models": {"stand-in": {"tokens": tokens}}}}, indent=2))
    else:
        said = {"role": "assistant", "content": [{"type": "text", "text": message}]}
        metadata = {"total_tokens": 40, "input_tokens": 30, "output_tokens": 10, "status": "completed"}
        print(json.dumps({"messages": [said], "metadata": metadata}, indent=2))


def dump(result):
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def attempt(what):
    """What came of it, or what was refused."""
    try:
        return dump(await what)
    except Exception as problem:  # the SDK raises what the server refused
        return {"raised": str(problem)}


async def connect(command, args, env):
    """The tools that a connection with this environment shows."""
    try:
        async with Client(StdioServerParameters(command=command, args=args, env=env), mode=order["era"]) as client:
            return await attempt(client.list_tools())
    except Exception as problem:
        return {"raised": str(problem)}


def ask_as(host, token):
    """The status of a request to the gateway under another host name or with another token."""
    request = urllib.request.Request(os.environ["PLANWRIGHT_GATEWAY"] + "/tools", headers={"Authorization": f"Bearer {token}"})
    if host:
        request.add_header("Host", host)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as refused:
        return refused.code


async def main():
    command, args, env = {"claude": claude, "codex": codex, "gemini": gemini, "goose": goose}[kind](sys.argv[2:])
    token = os.environ["PLANWRIGHT_STEP_TOKEN"]
    seen = {"prompt": sys.stdin.read(), "cwd": os.getcwd(), "gateway": os.environ["PLANWRIGHT_GATEWAY"], "token": token}
    async with Client(StdioServerParameters(command=command, args=args, env=env), mode=order["era"]) as client:
        seen["tools"] = dump(await client.list_tools())["tools"]
        seen["results"] = [await attempt(client.call_tool(name, args)) for name, args in order["calls"]]
        seen["resources"] = await attempt(client.list_resources())
        seen["prompts"] = await attempt(client.list_prompts())
    wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
    seen["wrong_token"] = await connect(command, args, {**env, "PLANWRIGHT_STEP_TOKEN": wrong})
    seen["other_place"] = await connect(command, args, {**env, "PLANWRIGHT_GATEWAY": "http://example.com:80"})
    seen["statuses"] = [ask_as(None, token), ask_as(None, wrong), ask_as("evil.example", token)]
    json.dump(seen, open(order["tell"], "w"))
    tell_result("did the work")


asyncio.run(main())
