// An MCP server of which every text is hostile: what its tools are called is the only thing it cannot choose.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const payloads = JSON.parse(readFileSync(new URL("payloads.json", import.meta.url), "utf8"));

function toolOf(payload, n) {
  const field = { type: "string", title: payload, description: payload, enum: [payload, `${payload} `], default: payload, examples: [payload] };
  const inputSchema = { type: "object", title: payload, description: payload, properties: { value: { type: "string", description: payload }, choice: field, [payload]: { type: "string" } } };
  return { name: `t${n}`, title: payload, description: payload, inputSchema, annotations: { title: payload, readOnlyHint: true } };
}

const tools = payloads.flatMap((payload, n) => [toolOf(payload, n), { ...toolOf(payload, n), name: payload }]);

function call({ name }) {
  const n = Number(name.slice(1));
  const text = payloads[n];
  if (n % 3 === 0) return { isError: true, content: [{ type: "text", text }] };
  return { content: [{ type: "text", text: n % 3 === 1 ? text : JSON.stringify([{ [text]: text }, { [text]: text }]) }] };
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  switch (method) {
    case "initialize":
      return send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {}, logging: {} }, serverInfo: { name: payloads[0], title: payloads[1], version: payloads[2] }, instructions: payloads[3] } });
    case "tools/list":
      return send({ id, result: { tools } });
    case "tools/call":
      send({ method: "notifications/message", params: { level: "error", logger: payloads[4], data: payloads[5] } });
      return send({ id, result: call(params) });
    default:
      return send({ id, result: {} });
  }
});
