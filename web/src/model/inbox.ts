// What waits for a person, in one line each: the kind of decision, then the consequence.
import type { AskedCall, Json, Waiting } from "../api/types";
import { consequence } from "./briefing";
import type { Route } from "./route";

export type InboxRow = {
  key: string;
  kind: "approve" | "answer" | "decide";
  word: string;
  title: string;
  consequence: string;
  who: string | null;
  since: string;
  expiresAt: string | null;
  route: Route;
};

export function inboxRow(item: Waiting): InboxRow {
  const base = {
    key: `${item.planId}/${item.runId ?? ""}/${item.step ?? ""}/${item.kind}`,
    who: item.proposedBy ? `${item.proposedBy.kind} ${item.proposedBy.name}` : null,
    since: item.since,
    expiresAt: item.expiresAt ?? null,
  };
  const name = item.title || item.briefing?.goal || item.planId;
  const run: Route = { page: "run", plan: item.planId, run: item.runId ?? "", ...(item.step ? { step: item.step } : {}) };
  switch (item.kind) {
    case "plan":
      return {
        ...base,
        kind: "approve",
        word: "Approve",
        title: name,
        consequence: item.briefing ? consequence(item.briefing) : (item.largeBriefing?.summary ?? ""),
        route: { page: "review", plan: item.planId },
      };
    case "step":
      return { ...base, kind: "approve", word: "Approve a call", title: `${name}, step ${item.step}`, consequence: callWords(item), route: run };
    case "input":
      return {
        ...base,
        kind: "answer",
        word: "Answer",
        title: item.questions?.[0]?.message ?? "A question",
        consequence: `${name}, step ${item.step}`,
        route: run,
      };
    case "outcome":
      return {
        ...base,
        kind: "decide",
        word: "Decide",
        title: `Did it happen? ${name}, step ${item.step}`,
        consequence: item.reason ?? "the outcome of a call is unknown",
        route: run,
      };
  }
}

/** The rows that were shown stay where they are; what is new comes after them. */
export function keepOrder(shown: readonly string[], rows: InboxRow[]): InboxRow[] {
  const place = new Map(shown.map((key, index) => [key, index]));
  const last = shown.length;
  return rows
    .map((row, index) => ({ row, place: place.get(row.key) ?? last + index }))
    .sort((a, b) => a.place - b.place)
    .map(({ row }) => row);
}

function callWords(item: Waiting): string {
  if (item.call) return describeCall(item.call);
  const step = item.briefing?.steps[0];
  if (step) return `${step.effect.words}`;
  return item.written ? callLine(item.written.tool, item.written.args) : "";
}

export function describeCall(call: AskedCall): string {
  return callLine(call.tool, call.args);
}

/** A tool and what it is given, by name. Everything is quoted, so that no value looks like another argument. */
function callLine(tool: string, args: Json): string {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return `${tool} ${oneLine(args)}`;
  return oneLine([tool, ...Object.entries(args).map(([name, value]) => `${/^\w+$/.test(name) ? name : JSON.stringify(name)}: ${JSON.stringify(value)}`)].join(" · "), 200);
}

/** A value on one line, cut where a line ends. The page that it leads to shows all of it. */
export function oneLine(value: Json, limit = 140): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const flat = text.replace(/\s+/g, " ");
  return flat.length > limit ? `${flat.slice(0, limit - 1)}…` : flat;
}
