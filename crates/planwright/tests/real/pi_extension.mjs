// A small stand-in for pi: loads the compiled extension, and does what the argument names. Prints what was seen.
import extension from "./planwright.js";

const [, , scenario, more] = process.argv;
const tools = {};
const commands = {};
const handlers = {};
const notes = [];
let yes = true;
const ui = {
	notify: (message, type) => notes.push({ message, type }),
	confirm: async (title, message) => {
		notes.push({ title, message });
		return yes;
	},
	select: async (_title, options) => options[0],
	setStatus: () => {},
};
const ctx = { cwd: process.cwd(), hasUI: true, ui };
extension({
	registerTool: (tool) => (tools[tool.name] = tool),
	registerCommand: (name, options) => (commands[name] = options),
	on: (event, handler) => (handlers[event] = handler),
});

const use = async (name, params) => {
	const done = await tools[name].execute("call", params, undefined, undefined, ctx);
	return { code: done.details.code, text: done.content.map((part) => part.text).join("\n") };
};
const ask = async (toolName, input, context = ctx) =>
	(await handlers.tool_call({ type: "tool_call", toolCallId: "1", toolName, input }, context)) ?? { block: false };

const seen = { tools: Object.keys(tools), commands: Object.keys(commands) };
if (scenario === "propose") {
	const step = { description: "Keep a note", tool: "local.write_file", args: { path: "note.txt", content: "from pi" } };
	seen.proposed = await use("plan_propose", { title: "Keep a note", id: "note", steps: [step], context: "nothing yet" });
	seen.seed = await use("plan_propose", {
		title: "Remind",
		id: "remind",
		steps: [{ description: "Send a reminder", tool: "go-easy", operation: "gmail send", target: "client" }],
	});
	seen.listed = await use("plan_list", {});
	seen.shown = await use("plan_get", { id: "note" });
	seen.approve = await use("plan_approve", { id: "note" });
	seen.reject = await use("plan_reject", { id: "note", feedback: "too early" });
	seen.option = await use("plan_get", { id: "--help" });
	seen.executed = await use("plan_execute", { id: "note" });
	await commands.plans.handler("", ctx);
	await commands.plan.handler("note", ctx);
} else if (scenario === "execute") {
	seen.executed = await use("plan_execute", { id: "note" });
} else if (scenario === "calls") {
	seen.ls = await ask("bash", { command: "ls" });
	seen.rm = await ask("bash", { command: "rm -rf /" });
	seen.guarded = await ask("edit", { path: "x", edits: [] });
	seen.agreed = await ask("write", { path: "x", content: "y" });
	yes = false;
	seen.declined = await ask("write", { path: "x", content: "y" });
	seen.alone = await ask("write", { path: "x", content: "y" }, { ...ctx, hasUI: false });
	seen.strange = await ask("b\u0430sh", { command: "ls" });
	seen.text = await ask("bash", "ls");
	seen.plan = await ask("plan_propose", {});
	await commands.plan.handler("", ctx);
	seen.planMode = await ask("bash", { command: "ls" });
	seen.reading = await ask("read", { path: "x" });
	seen.prompt = await handlers.before_agent_start({ type: "before_agent_start", systemPrompt: "You are pi." }, ctx);
} else if (scenario === "alone") {
	seen.ls = await ask("bash", { command: "ls" });
}
seen.notes = notes;
console.log(JSON.stringify(seen));
