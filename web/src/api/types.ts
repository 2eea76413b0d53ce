// Names for what the service answers. Everything comes from its OpenAPI document; what that describes
// only as "any JSON" is `Json` here.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

type With<Base, Fields> = Omit<Base, keyof Fields> & Fields;

export type Principal = Schemas["Principal"];
export type Whoami = Schemas["Whoami"];
export type LargeValue = Schemas["LargeValue"];
export type DiffLine = Schemas["BriefingDiffLine"];
export type FileChange = Schemas["BriefingFileChange"];
export type CallBriefing = With<Schemas["BriefingCallBriefing"], { args: Json; file?: FileChange | null }>;
export type ActionBriefing =
  | ({ kind: "call" } & CallBriefing)
  | { kind: "think"; prompt: string; model?: string | null }
  | {
      kind: "agent";
      instruction: string;
      target?: string | null;
      executor?: string | null;
      model?: string | null;
      tools: Schemas["BriefingScopedTool"][];
      maxCalls: number;
    }
  | { kind: "input"; message?: string | null; schema: Json }
  | { kind: "plan"; plan: string; version?: number | null; inputs: Json; late: string[] }
  | { kind: "nothing" };
export type EffectKind = "unknown" | "destroys" | "changes" | "sends" | "reads" | "nothing";
export type StepBriefing = With<
  Schemas["BriefingStepBriefing"],
  {
    action: ActionBriefing;
    effect: { kind: EffectKind; words: string };
    forEach?: { over: string; count?: number | null; items: Json[]; late: string[] } | null;
    undo?: CallBriefing | null;
    steps: StepBriefing[];
  }
>;
export type Briefing = With<Schemas["Briefing"], { steps: StepBriefing[] }>;
export type AskedCall = With<Schemas["AskedCallWire"], { args: Json }>;
export type Question = { key: string; message: string; schema: Json; url?: string | null };
export type Waiting = With<
  Schemas["Waiting"],
  {
    kind: "plan" | "step" | "input" | "outcome";
    briefing?: Briefing | null;
    call?: AskedCall | null;
    questions?: Question[];
    written?: { title: string; tool: string; args: JsonObject } | null;
  }
>;
export type Page<Item> = { items: Item[]; nextCursor?: string | null };
export type PlanLine = Schemas["PlanLine"];
export type RunLine = Schemas["RunLine"];
export type ApprovalLine = With<Schemas["ApprovalLine"], { late?: Record<string, string> }>;
export type StepVerdict = Schemas["StepVerdict"];
export type Thread = Schemas["ThreadLine"];
export type FieldChange = With<Schemas["DiffFieldChange"], { before?: Json; after?: Json }>;
export type StepChange = With<Schemas["DiffStepChange"], { fields: FieldChange[] }>;
export type SafeguardLoss = With<Schemas["DiffSafeguardLoss"], { before?: Json; after?: Json }>;
export type Diff = With<Schemas["Diff"], { fields: FieldChange[]; steps: StepChange[]; safeguards?: SafeguardLoss[] }>;
/** A step as it is written in the plan's document. */
export type PlanStep = {
  id: string;
  title?: string | null;
  tool?: string | null;
  args?: JsonObject;
  think?: { prompt: string } | null;
  agent?: { instruction: string } | null;
  input?: { message?: string | null; schema: Json } | null;
  plan?: { id: string } | null;
  dependsOn?: string[];
  capability?: string | null;
  when?: string | null;
  skip?: boolean;
  approvalRequired?: boolean;
};
export type Plan = With<
  Schemas["Plan"],
  {
    id: string;
    title?: string | null;
    goal?: string | null;
    steps?: PlanStep[];
    runs: RunLine[];
    approvals: ApprovalLine[];
    comments: Thread[];
    lostSafeguards?: { since: number; losses: SafeguardLoss[] };
    changes?: { since: { version: number; digest: string }; diff?: Diff; agreed?: string[] };
  }
>;
export type VersionLine = Schemas["VersionLine"];
export type StepResult = With<
  Schemas["StepResult"],
  { status: string; args?: Json; value?: Json; call?: AskedCall | null; items?: (With<Schemas["ItemResult"], { value?: Json }>)[] | null }
>;
export type RunResult = With<Schemas["RunResult_StepResult"], { steps: StepResult[]; criticalPath?: string[] | null }>;
export type ToolLine = With<Schemas["ToolLine"], { inputSchema: JsonObject; outputSchema?: JsonObject | null }>;
export type Stats = With<Schemas["StatsResult"], { plans: Record<string, number>; runs: Record<string, number> }>;
export type OperatorSettings = Schemas["OperatorSettings"];
export type ServiceSettings = Schemas["ServiceSettings"];
export type ServerSignIn = Schemas["ServerSignIn"];
export type SignInAddress = Schemas["SignInAddress"];
export type WorkerList = Schemas["WorkerList"];
export type WorkerLine = Schemas["WorkerLine"];
export type QueueLine = Schemas["QueueLine"];
export type DeadNoticeList = Schemas["DeadNoticeList"];
export type DayLine = Schemas["DayLine"];
export type PlanDecided = Schemas["PlanDecided"];
export type RunAccepted = Schemas["RunAccepted"];
export type UndoPreview = With<Schemas["UndoPreview"], { steps: { step: string; tool: string; args: Json }[] }>;
export type Finding = Schemas["Finding"];
export type ProblemBody = {
  type: string;
  code?: string;
  title: string;
  status: number;
  detail: string;
  hint?: string | null;
  findings?: Finding[];
  traceId?: string | null;
};
export type Edit =
  | { op: "set"; path: string; value: Json }
  | { op: "unset"; path: string }
  | { op: "skip"; step: string }
  | { op: "unskip"; step: string }
  | { op: "add"; step: PlanStep; before?: string; after?: string; to?: number }
  | { op: "move"; step: string; before?: string; after?: string; to?: number }
  | { op: "remove"; steps: string[] };
/** What the event streams carry, as far as the page reads it. */
export type PlanEvent = {
  event: string;
  planId: string;
  occurredAt: string;
  runId?: string;
  seq?: number;
  version?: number;
  by?: Principal;
  summary?: string;
  reason?: string;
  attempt?: number;
  step?: { id: string; state: string; tool?: string; action?: string };
  error?: { code?: string; message?: string } | string;
  done?: number;
  total?: number;
  message?: string;
  level?: string;
};
