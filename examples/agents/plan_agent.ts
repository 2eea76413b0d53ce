/**
 * An agent that acts through plans, with the TypeScript SDK of the MCP project: it proposes a plan, lets the client ask its
 * person, and runs what was approved.
 *
 *     plan_agent.ts [PROGRAM] [ANSWER]
 *
 * PROGRAM is `planwright` unless it is named. The model is a script, so that this runs without a key and without a network.
 * ANSWER stands for the person in front of the client: `approve`, `changes` or `reject`. A real client shows the message and
 * the form, and sends what the person chose; nothing else may answer.
 */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [program = "planwright", decision = "reject"] = process.argv.slice(2);

const plan = {
	id: "note",
	title: "Keep a note",
	goal: "Show that an agent acts after a person agreed",
	steps: [{ id: "write", tool: "local.write_file", args: { path: "note.txt", content: "agreed" } }],
};

interface Answer {
	success?: boolean;
	error?: string;
	next?: string;
	status?: string;
	run?: { status: string };
}

const client = new Client({ name: "plan-agent", version: "1.0.0" }, { capabilities: { elicitation: {} } });

client.setRequestHandler(ElicitRequestSchema, async (request) => {
	console.error(request.params.message);
	return { action: "accept", content: { decision, comment: "said at the client" } };
});

const env = Object.fromEntries(
	Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
);
await client.connect(new StdioClientTransport({ command: program, args: ["mcp"], env }));

async function call(name: string, args: Record<string, unknown>): Promise<Answer> {
	const result = await client.callTool({ name, arguments: args });
	return (result.structuredContent ?? {}) as Answer;
}

/** What a model would do with the answers: one call after the other, and an end. */
async function act(): Promise<string> {
	const proposed = await call("plan_propose", { plan });
	if (!proposed.success) return `The plan could not be proposed: ${proposed.error}`;
	const approved = await call("plan_approve", { planId: plan.id });
	if (!approved.success) return `Nothing was done: ${approved.error}`;
	const executed = await call("plan_execute", { planId: plan.id });
	if (!executed.success) return `It could not be run: ${executed.error}`;
	const status = await call("plan_status", { planId: plan.id });
	return `The run is ${status.run?.status}.`;
}

console.log(await act());
await client.close();
