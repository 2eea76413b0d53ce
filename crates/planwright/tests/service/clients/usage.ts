// Calls of the service by openapi-fetch, with the types that openapi-typescript made of its document: `tsc --strict`
// accepts nothing that the document does not promise.
//
// usage.js ADDRESS TOKEN

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.d.ts";

type Schemas = components["schemas"];
type Problem = Schemas["Problem"];
type Code = Schemas["ProblemCode"];
type Answer<Data> = { data?: Data; error?: Problem; response: Response };

const [address, token] = process.argv.slice(2);
if (address === undefined || token === undefined) throw new Error("usage.js ADDRESS TOKEN");
const client = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } });
const stranger = createClient<paths>({ baseUrl: address });

function check(holds: boolean, what: unknown): asserts holds {
  if (!holds) throw new Error(JSON.stringify(what));
}

async function good<Data>(asked: Promise<Answer<Data>>): Promise<Data> {
  const { data, error } = await asked;
  check(error === undefined && data !== undefined, error);
  return data;
}

async function refused(asked: Promise<Answer<unknown>>, ...codes: Code[]): Promise<void> {
  const { error } = await asked;
  check(error !== undefined && codes.includes(error.code), error);
}

const of = (id: string) => ({ params: { path: { id } } });
const inPlan = (id: string, step: string) => ({ params: { path: { id, step } } });

async function propose(id: string, ...steps: Schemas["NewStep"][]): Promise<void> {
  const created = await good(client.POST("/plan", { body: { id, title: `Plan ${id}`, steps } }));
  check(created.plan.status === "proposed", created);
}

async function approve(id: string): Promise<void> {
  const decided = await good(
    client.POST("/plan/{id}/approve", { ...of(id), body: { decision: "approve", version: 1 } }),
  );
  check(decided.status === "approved", decided);
}

async function start(id: string, ...steps: Schemas["NewStep"][]): Promise<string> {
  await propose(id, ...steps);
  await approve(id);
  return (await good(client.POST("/plan/{id}/run", of(id)))).runId;
}

async function wait(id: string, status: Schemas["PlanStatus"]): Promise<void> {
  for (let turn = 0; turn < 600; turn += 1) {
    const plan = await good(client.GET("/plan/{id}", of(id)));
    if (plan.status === status) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${id} is not ${status}`);
}

const note: Schemas["NewStep"] = { id: "note", tool: "demo.echo", args: { value: 1 }, timeoutSeconds: 300 };
const gate: Schemas["NewStep"] = { id: "gate", tool: "demo.echo", args: { value: 2 }, approvalRequired: true };
const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
const ask: Schemas["NewStep"] = { id: "ask", input: { message: "How many?", schema } };

/** What an event says, told apart by its name. */
function describe(event: Schemas["Event"]): string {
  switch (event.event) {
    case "plan.step":
      return `${event.step.id} ${event.step.state}`;
    case "run.started":
      return `${event.runId} ${event.by.name}`;
    default:
      return event.summary;
  }
}

async function lookAround(): Promise<void> {
  check((await good(stranger.GET("/healthz"))).alive, "alive");
  check((await stranger.GET("/readyz")).data?.ready === true, "ready");
  check((await good(stranger.GET("/openapi.json")))["openapi"] === "3.1.0", "openapi");
  check((await good(client.GET("/whoami"))).role === "admin", "whoami");
  const tools = await good(client.GET("/tools", { params: { query: { limit: 1 } } }));
  check(tools.length === 1 && tools[0]?.inputSchema["type"] === "object", tools);
  check((await good(client.GET("/stats"))).unreadable === 0, "stats");
  await refused(client.GET("/workers"), "no_workers");
  await refused(client.GET("/queues"), "no_broker");
  const figures = await client.GET("/metrics", { parseAs: "text" });
  check(figures.response.status === 200, figures.error);
  await refused(stranger.POST("/sign-in", { body: { code: "x" } }), "sign_in_refused");
  await good(client.POST("/tickets", { body: { path: "/events" } }));
  check((await good(client.POST("/validate", { body: { steps: [note] } }))).ok, "valid");
  check((await good(client.POST("/expressions/check", { body: { expression: "1 < 2" } }))).ok, "expression");
  const messages: Schemas["ChatMessage"][] = [{ role: "user", content: "Hello" }];
  await refused(client.POST("/chat", { body: { messages } }), "model_not_configured");
}

async function write(): Promise<void> {
  const created = await good(client.POST("/plan", { body: { goal: "Ship it" } }));
  const { id } = created.plan;
  check(created.plan.status === "draft", created);
  const read = await client.GET("/plan/{id}", of(id));
  const state = (response: Response): string => response.headers.get("etag") ?? "";
  const path = { id };
  const step = { id: "note", tool: "demo.echo", args: { value: 1 } };
  const preview = await good(
    client.POST("/plan/{id}/edits/preview", { ...of(id), body: { edits: [{ op: "add", step }] } }),
  );
  check(preview.ok, preview);
  const edited = await client.PATCH("/plan/{id}", {
    params: { path, header: { "If-Match": state(read.response) } },
    body: { edits: [{ op: "add", step }], reason: "it needs a step" },
  });
  check(edited.data?.version === 2, edited.error);
  const { id: comment } = await good(client.POST("/plan/{id}/comments", { ...of(id), body: { text: "Why?", step: "note" } }));
  const patched = await client.PATCH("/plan/{id}", {
    params: { path, header: { "If-Match": state(edited.response) }, query: { reason: "a better title" } },
    headers: { "Content-Type": "application/merge-patch+json" },
    body: { title: "Better" },
  });
  check(patched.data?.title === "Better", patched.error);
  const threads = await good(client.GET("/plan/{id}/comments", of(id)));
  check(threads[0]?.state === "open", threads);
  await good(client.POST("/plan/{id}/comments/{comment}/resolve", { params: { path: { id, comment } } }));
  await good(client.POST("/plan/{id}/comments/{comment}/reopen", { params: { path: { id, comment } } }));
  await good(client.POST("/plan/{id}/comments/{comment}/resolve", { params: { path: { id, comment } } }));
  const versions = await good(client.GET("/plan/{id}/versions", of(id)));
  check(versions.length === 3 && versions[2]?.reason === "a better title", versions);
  const first = await good(client.GET("/plan/{id}/versions/{version}", { params: { path: { id, version: 1 } } }));
  check(first.document.goal === "Ship it", first);
  const diff = await good(client.GET("/plan/{id}/diff", { params: { path, query: { from: 1, to: 2 } } }));
  check(diff.steps[0]?.kind === "added", diff);
  await good(client.POST("/plan/{id}/restore", { ...of(id), body: { version: 2 } }));
  await good(client.POST("/plan/{id}/propose", of(id)));
  const listed = await good(client.GET("/plan", { params: { query: { status: "proposed" } } }));
  check(listed.items.some((plan) => plan.title === "Ship it"), listed);
  const briefing = await good(client.GET("/plan/{id}/briefing", of(id)));
  check(briefing.steps[0]?.action.kind === "call", briefing);
  await refused(client.POST("/plan/{id}/regenerate", of(id)), "model_not_configured");
  await good(client.POST("/plan/{id}/request-changes", { ...of(id), body: { version: 4, reason: "say where" } }));
  check((await client.DELETE("/plan/{id}", of(id))).response.status === 204, "deleted");
}

async function decide(): Promise<void> {
  await propose("decided", note);
  await good(client.POST("/plan/{id}/reject", { ...of("decided"), body: { version: 1, reason: "not today" } }));
  await propose("agreed", note);
  const inbox = await good(client.GET("/approvals", { params: { query: { limit: 1 } } }));
  check(inbox.items.length === 1 && inbox.items[0]?.kind === "plan", inbox);
  await good(client.POST("/plan/{id}/dry-run", of("agreed")));
  check((await good(client.POST("/policy/explain", { body: { id: "agreed" } }))).verdict === "allow", "policy");
  const { digest } = await good(client.GET("/plan/{id}", of("agreed")));
  await good(client.POST("/plan/{id}/approve", { ...of("agreed"), body: { decision: "approve", digest } }));
  await good(client.POST("/plan/{id}/revoke-approval", of("agreed")));
  await refused(client.POST("/plan/{id}/pause", of("agreed")), "no_run");
}

async function run(): Promise<void> {
  const run = await start("over", note);
  await wait("over", "completed");
  const inRun = { params: { path: { id: "over", run, step: "note" } } };
  const result = await good(client.GET("/plan/{id}/runs/{run}", inRun));
  check(result.success && result.steps[0]?.status === "completed", result);
  check((await good(client.GET("/plan/{id}/runs", of("over"))))[0]?.id === run, "runs");
  await good(client.GET("/plan/{id}/runs/{run}/steps/{step}/value", inRun));
  await good(client.GET("/plan/{id}/runs/{run}/steps/{step}/arguments", inRun));
  await good(client.GET("/plan/{id}/runs/{run}/steps/{step}/briefing", inRun));
  const list = await good(client.GET("/plan/{id}/events", of("over")));
  check(typeof list !== "string", list);
  const told = list.events.map((event) => ("event" in event ? describe(event) : event.type));
  check(told.includes("note completed"), told);
  const all = await good(client.GET("/events"));
  check(typeof all !== "string" && all.events.length > 0, all);
  await approve("over");
  await good(client.POST("/plan/{id}/fork", { ...of("over"), body: { from: ["note"] } }));
  await wait("over", "completed");
  await approve("over");
  await good(client.POST("/plan/{id}/steps/{step}/retry", inPlan("over", "note")));
  await wait("over", "completed");
  await refused(client.POST("/plan/{id}/check", of("over")), "no_criteria");
  await refused(client.POST("/plan/{id}/undo", { ...of("over"), body: { dryRun: true } }), "nothing_to_undo");
  await good(client.POST("/plan/{id}/archive", of("over")));
}

async function steps(): Promise<void> {
  await start("gated", gate);
  await wait("gated", "waiting");
  await refused(
    client.POST("/plan/{id}/steps/{step}/resolve", { ...inPlan("gated", "gate"), body: { outcome: "happened" } }),
    "nothing_to_resolve",
  );
  await good(
    client.POST("/plan/{id}/steps/{step}/approve", {
      ...inPlan("gated", "gate"),
      body: { decision: "approve", version: 1 },
    }),
  );
  await wait("gated", "completed");
  await start("refused", gate);
  await wait("refused", "waiting");
  await good(client.POST("/plan/{id}/steps/{step}/reject", { ...inPlan("refused", "gate"), body: { version: 1 } }));
  await wait("refused", "failed");
  await start("skipped", gate, note);
  await wait("skipped", "waiting");
  await good(client.POST("/plan/{id}/pause", of("skipped")));
  await good(client.POST("/plan/{id}/resume", of("skipped")));
  await good(client.POST("/plan/{id}/steps/{step}/skip", inPlan("skipped", "gate")));
  await wait("skipped", "completed");
  await start("asking", ask);
  await wait("asking", "waiting");
  const { items } = await good(client.GET("/approvals"));
  const asked = items.find((item) => item.planId === "asking");
  check(asked?.questions?.[0]?.message === "How many?", items);
  await good(
    client.POST("/plan/{id}/steps/{step}/input", {
      ...inPlan("asking", "ask"),
      body: { question: asked.digest, values: { n: 3 } },
    }),
  );
  await wait("asking", "completed");
  await start("cancelled", gate);
  await wait("cancelled", "waiting");
  await good(client.POST("/plan/{id}/cancel", of("cancelled")));
  await wait("cancelled", "cancelled");
  await start("failed", gate);
  await wait("failed", "waiting");
  await good(client.POST("/plan/{id}/fail", of("failed")));
  await wait("failed", "failed");
}

for (const part of [lookAround, write, decide, run, steps]) await part();
