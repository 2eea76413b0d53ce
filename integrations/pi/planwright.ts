/**
 * Planwright for pi: plans as tools, `/plan` and `/plans`, and the policy before every call.
 *
 * Installed by `planwright setup pi`. Everything is done by the `planwright` program: this file only asks it and passes on
 * what it says. Nothing here approves a plan; a person does that in a terminal of their own, or signed in to the service.
 */
import { spawn } from "node:child_process";
import type { ExtensionAPI, ExtensionContext } from "@mariozechner/pi-coding-agent";
import { Type } from "typebox";

/** The program; PLANWRIGHT names another one than the one in PATH. */
const PROGRAM = process.env.PLANWRIGHT || "planwright";
/** Answers longer than this are cut: they go into the context of a model. */
const MAX_TEXT = 40_000;
/** A decision about a call takes milliseconds. The program itself gives up after 8 seconds. */
const DECISION_MS = 15_000;

interface Said {
	code: number | null;
	out: string;
	err: string;
}

/** Runs the program in the agent's folder. Its environment says that an agent asks. */
function run(args: string[], cwd: string, input = "", signal?: AbortSignal, timeout?: number): Promise<Said> {
	return new Promise((resolve) => {
		const env = { ...process.env, PLANWRIGHT_AGENT: "pi" };
		const child = spawn(PROGRAM, args, { cwd, env, signal, timeout, stdio: ["pipe", "pipe", "pipe"] });
		let out = "";
		let err = "";
		child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
		child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
		child.on("error", (error) => resolve({ code: null, out, err: `${err}${error.message}` }));
		child.on("close", (code) => resolve({ code, out, err }));
		child.stdin.on("error", () => {});
		child.stdin.end(input);
	});
}

/** What a tool gives back: the program's document, or why there is none. */
function result(said: Said) {
	const ok = said.code === 0;
	const text = (ok ? said.out : `${said.out}${said.err}`).trim().slice(0, MAX_TEXT);
	return { content: [{ type: "text" as const, text: text || "done" }], details: { code: said.code } };
}

/** The words for a person, or for the model that is to pass them on. */
function howToApprove(id: string): string {
	return `A person approves: planwright approve ${id} in a terminal of their own, or signed in to planwright serve.`;
}

const PLAN_MODE =
	"Plan mode is on: change nothing. Look with read-only tools, then call plan_propose. A person approves the plan " +
	"before anything of it happens.";

/** Tools of pi that change something. */
const CHANGING = new Set(["bash", "edit", "write"]);

export default function planwright(pi: ExtensionAPI) {
	let planMode = false;

	pi.registerTool({
		name: "plan_propose",
		label: "Propose a plan",
		description:
			"Propose a plan for a person to approve. Each step says what to do, with which tool and operation, and on what. " +
			"Use it for work that changes something outside of the files at hand or cannot be undone.",
		parameters: Type.Object({
			title: Type.String(),
			goal: Type.Optional(Type.String({ description: "Why" })),
			id: Type.Optional(Type.String({ description: "The id of a plan that was rejected, to propose it again" })),
			steps: Type.Array(
				Type.Object({
					description: Type.String(),
					tool: Type.String({ description: "The tool, or server.tool" }),
					operation: Type.Optional(Type.String()),
					target: Type.Optional(Type.String()),
					args: Type.Optional(
						Type.Record(Type.String(), Type.Unknown(), {
							description: "The arguments of the tool, if they are known: then Planwright calls it itself",
						}),
					),
				}),
				{ minItems: 1 },
			),
			context: Type.Optional(Type.String({ description: "What you found out, for the person who reviews" })),
		}),
		async execute(_id, params, signal, _onUpdate, ctx) {
			const plan = {
				...(params.id ? { id: params.id } : {}),
				title: params.title,
				...(params.goal ? { goal: params.goal } : {}),
				steps: params.steps.map((step) =>
					step.args ? { title: step.description, tool: step.tool, args: step.args } : step,
				),
				...(params.context ? { context: { notes: params.context } } : {}),
			};
			const said = await run(["import", "-", "--format", "json", "--json"], ctx.cwd, JSON.stringify(plan), signal);
			const done = result(said);
			if (said.code === 0) {
				const id = (JSON.parse(said.out) as { id: string }).id;
				done.content.push({ type: "text", text: howToApprove(id) });
				if (ctx.hasUI) ctx.ui.notify(`Plan ${id} waits for approval (/plans)`, "info");
			}
			return done;
		},
	});

	pi.registerTool({
		name: "plan_list",
		label: "List plans",
		description: "List the plans of this folder with their status.",
		parameters: Type.Object({}),
		execute: async (_id, _params, signal, _onUpdate, ctx) =>
			result(await run(["list", "--json"], ctx.cwd, "", signal)),
	});

	const planId = Type.Object({ id: Type.String({ description: "The id of the plan" }) });

	pi.registerTool({
		name: "plan_get",
		label: "Show a plan",
		description: "Show a plan with its steps, its status and its runs.",
		parameters: planId,
		execute: async (_id, params, signal, _onUpdate, ctx) =>
			result(await run(["show", "--json", "--", params.id], ctx.cwd, "", signal)),
	});

	pi.registerTool({
		name: "plan_approve",
		label: "Ask for approval",
		description: "Ask a person to approve a plan. This cannot approve anything by itself.",
		parameters: planId,
		async execute(_id, params, _signal, _onUpdate, ctx) {
			const words = howToApprove(params.id);
			if (ctx.hasUI) ctx.ui.notify(words, "warning");
			return { content: [{ type: "text", text: `Not approved yet. ${words}` }], details: { code: null } };
		},
	});

	pi.registerTool({
		name: "plan_reject",
		label: "Comment against a plan",
		description: "Tell the people who review that a plan should be rejected, and why. A person decides.",
		parameters: Type.Object({ id: Type.String(), feedback: Type.Optional(Type.String()) }),
		async execute(_id, params, signal, _onUpdate, ctx) {
			const text = `The agent asks to reject this plan: ${params.feedback ?? "no reason given"}`;
			return result(await run(["comment", "--", params.id, text], ctx.cwd, "", signal));
		},
	});

	pi.registerTool({
		name: "plan_execute",
		label: "Run an approved plan",
		description: "Run a plan that a person approved, and wait until it is over or waits for a person.",
		parameters: planId,
		execute: async (_id, params, signal, _onUpdate, ctx) =>
			result(await run(["run", "--json", "--", params.id], ctx.cwd, "", signal)),
	});

	/** Before every call: plan mode, then the policy. Everything that goes wrong blocks the call. */
	pi.on("tool_call", async (event, ctx) => {
		if (planMode && CHANGING.has(event.toolName)) return { block: true, reason: PLAN_MODE };
		if (event.toolName.startsWith("plan_")) return undefined;
		try {
			return await askPolicy(event.toolName, event.input, ctx);
		} catch (error) {
			return { block: true, reason: `planwright could not decide: ${String(error)}` };
		}
	});

	async function askPolicy(tool: string, input: unknown, ctx: ExtensionContext) {
		const question = { hook_event_name: "tool_call", tool_name: tool, tool_input: input, cwd: ctx.cwd };
		const said = await run(
			["hook", "pre-tool-use", "--client", "pi"],
			ctx.cwd,
			JSON.stringify(question),
			undefined,
			DECISION_MS,
		);
		if (said.code !== 0) return { block: true, reason: said.err.trim() || "planwright could not decide" };
		const answer = JSON.parse(said.out) as { decision?: string; reason?: string };
		switch (answer.decision) {
			case undefined:
			case "allow":
				return undefined;
			case "ask": {
				const yes = ctx.hasUI && (await ctx.ui.confirm(`Allow ${tool}?`, answer.reason ?? ""));
				return yes ? undefined : { block: true, reason: `A person has to agree. ${answer.reason ?? ""}` };
			}
			default:
				return { block: true, reason: answer.reason ?? "denied by policy" };
		}
	}

	pi.on("before_agent_start", async (event) =>
		planMode ? { systemPrompt: `${event.systemPrompt}\n\n${PLAN_MODE}` } : undefined,
	);

	pi.registerCommand("plan", {
		description: "Turn plan mode on or off; /plan ID shows a plan",
		handler: async (args, ctx) => {
			const id = args.trim();
			if (id) {
				const said = await run(["show", "--", id], ctx.cwd);
				ctx.ui.notify((said.out || said.err).trim(), said.code === 0 ? "info" : "error");
				return;
			}
			planMode = !planMode;
			ctx.ui.setStatus("planwright", planMode ? "plan mode" : undefined);
			ctx.ui.notify(planMode ? "Plan mode is on: nothing is changed" : "Plan mode is off", "info");
		},
	});

	pi.registerCommand("plans", {
		description: "List the plans of this folder, and show one",
		handler: async (_args, ctx) => {
			const said = await run(["list", "--json"], ctx.cwd);
			if (said.code !== 0) {
				ctx.ui.notify(said.err.trim(), "error");
				return;
			}
			const plans = JSON.parse(said.out) as { id: string; title: string; status: string }[];
			if (plans.length === 0) {
				ctx.ui.notify("There are no plans here", "info");
				return;
			}
			const lines = plans.map((plan) => `${plan.id}  ${plan.status}  ${plan.title}`);
			const chosen = await ctx.ui.select("Plans", lines);
			const plan = plans[lines.indexOf(chosen ?? "")];
			if (!plan) return;
			const shown = await run(["show", "--", plan.id], ctx.cwd);
			const words = plan.status === "proposed" ? `\n${howToApprove(plan.id)}` : "";
			ctx.ui.notify(`${shown.out.trim()}${words}`, "info");
		},
	});
}
