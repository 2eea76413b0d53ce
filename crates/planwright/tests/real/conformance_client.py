"""What the conformance suite has a client do, done with `planwright` on the command line.

The suite starts this with the address of its server. A workspace is made whose only server is that one, its tools are
listed, and a plan calls those that the scenario wants called. Questions are answered as a person would at a terminal.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

PROGRAM = os.environ["PLANWRIGHT"]
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))

EXAMPLES = {"string": "text", "number": 2, "integer": 2, "boolean": True, "object": {}, "array": []}
ONLY_LISTED = {"initialize", "json-schema-ref-no-deref"}


class Workspace:
    def __init__(self, folder: str, home: str, url: str) -> None:
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "XDG_CONFIG_HOME": home,
            "PLANWRIGHT_TRUST_PROJECT_SERVERS": "1",
        }
        if SCENARIO != "auth/pre-registration":
            self.write(".mcp.json", {"mcpServers": {"suite": {"type": "http", "url": url}}})
            return
        # The owner of the suite's server made this program known, and gave the user these.
        self.environment["PLANWRIGHT_SECRET_SUITE"] = CONTEXT["client_secret"]
        os.mkdir(os.path.join(home, "planwright"))
        with open(os.path.join(home, "planwright", "planwright.toml"), "w", encoding="utf-8") as file:
            file.write(f'[servers.suite]\nurl = "{url}"\nclient_id = "{CONTEXT["client_id"]}"\nclient_secret = "SUITE"\n')

    def write(self, name: str, document: object) -> None:
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            json.dump(document, file)

    def run(self, *arguments: str) -> object:
        done = subprocess.run(
            [PROGRAM, *arguments, "--json"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if arguments != ("tools",):
            print(arguments, done.returncode, done.stdout, done.stderr, sep="\n", file=sys.stderr)
        return json.loads(done.stdout) if done.stdout.strip() else None

    def sign_in(self) -> None:
        """Signs in, as a person does whose browser goes wherever it is sent."""
        with subprocess.Popen(
            [PROGRAM, "servers", "sign-in", "suite"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            for line in process.stdout:
                print("sign-in", line, end="", file=sys.stderr)
                address = re.search(r"https?://\S+", line)
                if address:
                    try:
                        urllib.request.urlopen(address.group(), timeout=120).read()
                    except OSError as error:
                        print("the browser", error, file=sys.stderr)

    def answer(self, plan: str) -> None:
        """Accepts every question as it is asked: with the defaults of its form, or a yes."""
        for _ in range(10):
            asked = self.run("input", plan)["asked"]
            if not asked:
                return
            for question in asked:
                values = {}
                for one in question["questions"]:
                    fields = one["schema"].get("properties", {})
                    values = {name: field.get("default", True) for name, field in fields.items()}
                self.run("input", plan, question["step"], "--value", json.dumps(values))
            self.run("resume", plan)


def example(tool: dict) -> dict:
    """Values for what a tool cannot do without."""
    schema = tool["inputSchema"]
    fields = schema.get("properties", {})
    return {name: EXAMPLES[fields[name]["type"]] for name in schema.get("required", [])}


def wanted(tools: list) -> list:
    if SCENARIO in ONLY_LISTED:
        return []
    if "toolCalls" in CONTEXT:
        # A plan leaves out what has no value: null is a value of its own, which these tools do not take.
        return [
            (call["name"], {name: value for name, value in call["arguments"].items() if value is not None})
            for call in CONTEXT["toolCalls"]
        ]
    names = [tool["name"] for tool in tools]
    if "json_schema_echo" in names:
        schema = next(tool for tool in tools if tool["name"] == "json_schema_2020_12_tool")["inputSchema"]
        return [("json_schema_echo", {"schema": schema})]
    return [(tool["name"], example(tool)) for tool in tools]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        workspace = Workspace(folder, home, sys.argv[1])
        if SCENARIO.startswith("auth/"):
            workspace.sign_in()
        listed = workspace.run("tools")
        tools = [tool for tool in listed if tool["server"] == "suite"]
        steps = [
            {"id": f"call{place}", "tool": f"suite.{name}", "args": arguments}
            for place, (name, arguments) in enumerate(wanted(tools))
        ]
        if not steps:
            return
        workspace.write("plan.json", {"id": "calls", "title": "Call what the scenario wants", "steps": steps})
        workspace.run("run", "plan.json", "--yes")
        workspace.answer("calls")


main()
