// A run while it happens: where each step stands, how long it took, and what a person can do about it.
import { lazy, Suspense, useCallback, useMemo, useState, type ReactNode } from "react";
import { planPath, post } from "../../api/client";
import { usePlanEvents } from "../../api/live";
import { queryClient, refreshPlan, useBriefing, useInbox, usePlan, useRun, useWhoami, useWorkers } from "../../api/queries";
import type { PlanEvent, RunResult } from "../../api/types";
import { may, whyNot } from "../../model/access";
import type { GraphStep } from "../../model/graph";
import { doneCount, emptyRun, foldRun, isOver, isPassing, mergeSteps, stateWord, type RunLife } from "../../model/run";
import { count } from "../../model/text";
import { stepsForWorkers, waitsForWorkers, type Wait } from "../../model/workers";
import { duration } from "../../model/time";
import { Button } from "../../ui/Button";
import { useAction, useNow } from "../../ui/hooks";
import { useKeys } from "../../ui/keys";
import { LiveMark } from "../../ui/LiveMark";
import { Link, navigate } from "../../ui/router";
import { Loading, ProblemNote, State } from "../../ui/States";
import { Quote, Text } from "../../ui/Text";
import { EventLog } from "./EventLog";
import { useSettled, useThrottled } from "./pace";
import { StepPanel } from "./StepPanel";
import { Timeline } from "./Timeline";
import { FailSheet, UndoSheet } from "./RunSheets";

const GraphView = lazy(() => import("../graph/GraphView"));

type Props = { plan: string; run: string; step: string | null };

export default function RunPage({ plan, run, step }: Props): ReactNode {
  const [life, setLife] = useState<RunLife>(() => emptyRun(run));
  const refresh = useThrottled(async () => {
    await Promise.all([
      queryClient.invalidateQueries({ queryKey: ["plan", plan, "run", run] }),
      queryClient.invalidateQueries({ queryKey: ["inbox"] }),
    ]);
  });
  const take = useCallback(
    (events: PlanEvent[]) => {
      setLife((before) => foldRun(before, events));
      // Steps change a run often, and its plan never.
      if (events.some((event) => event.event !== "plan.step" && !isPassing(event))) void queryClient.invalidateQueries({ queryKey: ["plan", plan], exact: true });
      if (events.some((event) => event.runId === run && !isPassing(event))) refresh();
    },
    [run, refresh],
  );
  const live = usePlanEvents(plan, take, refresh);
  const result = useRun(plan, run, live === "reconnecting");
  if (result.error && !result.data) return <ProblemNote error={result.error} onRetry={() => void result.refetch()} />;
  if (!result.data) return <Loading what="the run" lines={6} />;
  return <Run plan={plan} result={result.data} life={life} chosen={step} live={<LiveMark state={live} />} />;
}

const NO_PATH: string[] = [];

type View = "timeline" | "graph" | "log";

function Run({ plan, result, life, chosen, live }: { plan: string; result: RunResult; life: RunLife; chosen: string | null; live: ReactNode }): ReactNode {
  const run = life.run;
  const who = useWhoami().data;
  const loaded = usePlan(plan).data?.plan;
  const briefing = useBriefing(plan, loaded?.digest).data;
  const inbox = useInbox().data ?? [];
  const [view, setView] = useState<View>("timeline");
  const [sheet, setSheet] = useState<"undo" | "fail" | null>(null);
  const over = isOver(result.status);
  const now = useNow(over ? 60_000 : 500);
  const steps = useMemo(() => mergeSteps(result, life), [result, life]);
  const offered = useSettled(firstThatMatters(steps), 1_500);
  const selected = chosen ?? offered;
  const select = (id: string) => navigate({ page: "run", plan, run, step: id }, true);
  const done = doneCount(steps);
  const command = useAction(async (name: "pause" | "resume" | "cancel") => {
    await post(planPath(plan, `/${name}`), { run });
    refreshPlan(plan);
  });
  const move = (by: number) => {
    const index = steps.findIndex((other) => other.id === selected);
    const next = steps[Math.min(Math.max(0, index + by), steps.length - 1)];
    if (next) select(next.id);
  };
  useKeys([
    { key: "j", words: "next step", run: () => move(1) },
    { key: "k", words: "previous step", run: () => move(-1) },
    { key: "t", words: "timeline", run: () => setView("timeline") },
    { key: "g", words: "graph", run: () => setView("graph") },
    { key: "l", words: "log", run: () => setView("log") },
  ]);
  const graph = useMemo((): GraphStep[] => {
    const after = new Map((briefing?.steps ?? []).map((step) => [step.id, step.after]));
    return steps.map((step) => ({
      id: step.id,
      after: after.get(step.id) ?? [],
      title: step.title,
      tool: step.tool,
      state: step.status,
      mark: stateWord(step.status).glyph,
    }));
  }, [steps, briefing]);
  const step = steps.find((other) => other.id === selected);
  const capabilityOf = useMemo(() => new Map((loaded?.steps ?? []).flatMap((known) => (known.capability ? [[known.id, known.capability] as const] : []))), [loaded]);
  const forWorkers = over ? [] : stepsForWorkers(steps, capabilityOf);
  const workers = useWorkers(forWorkers.length > 0).data;
  const waits = workers ? waitsForWorkers(run, forWorkers, workers) : [];
  const waiting = steps.filter((other) => stateWord(other.status).tone === "ask").length;
  const elapsed = over ? result.durationMs : life.startedAt ? now - Date.parse(life.startedAt) : result.durationMs;
  const undoable = over && may(who, "run") && may(who, "approve");
  return (
    <div className="page run">
      <header className="page-head">
        <div>
          <h1>
            <Text text={loaded?.title || loaded?.goal || plan} />
          </h1>
          <p className="meta">
            <State state={result.status} /> · {duration(elapsed)} · <code>{run}</code> ·{" "}
            <Link to={{ page: "review", plan }}>version {result.version}</Link> · {live}
          </p>
        </div>
        <div className="row">
          {!over ? (
            <>
              {result.status === "paused" || result.status === "stalled" ? (
                <Button tone="accent" busy={command.busy} why={whyNot(who, "run")} onClick={() => void command.run("resume")}>
                  Resume
                </Button>
              ) : (
                <Button busy={command.busy} why={whyNot(who, "run")} onClick={() => void command.run("pause")}>
                  Pause
                </Button>
              )}
              {result.status === "stalled" ? <Button onClick={() => setSheet("fail")}>Mark as failed</Button> : null}
              <Button tone="danger" busy={command.busy} why={whyNot(who, "cancel")} onClick={() => void command.run("cancel")}>
                Cancel
              </Button>
            </>
          ) : undoable ? (
            <Button onClick={() => setSheet("undo")}>Undo …</Button>
          ) : null}
        </div>
      </header>
      <ProblemNote error={command.error} />
      <p className="progress-line">
        <progress max={steps.length} value={done} aria-label="Steps that have ended" /> {done} of {count(steps.length, "step")} ended
        {waiting > 0 && !over ? <b className="asks"> · {count(waiting, "step")} {waiting === 1 ? "waits" : "wait"} for a person</b> : null}
        {result.queuedBehind != null ? ` · waits for its turn, ${result.queuedBehind} before it` : ""}
      </p>
      {result.reason ? (
        <p className="bad">
          <Text text={result.reason} />
        </p>
      ) : null}
      <Stuck waits={waits.filter((wait) => wait.isStuck)} />
      <Reflection plan={plan} result={result} proposed={loaded?.status === "proposed" ? loaded.version : null} />
      {result.continues ? (
        <p>
          It continues in <Link to={{ page: "run", plan, run: result.continues }}>{result.continues}</Link>.
        </p>
      ) : null}
      <div className="columns run-columns">
        <div>
          <div className="tabs" role="tablist" aria-label="Views of the run">
            {(["timeline", "graph", "log"] as const).map((name) => (
              <button key={name} type="button" role="tab" aria-selected={view === name} onClick={() => setView(name)}>
                {name === "timeline" ? "Timeline" : name === "graph" ? "Graph" : "Log"}
              </button>
            ))}
          </div>
          <div role="tabpanel" aria-label={view}>
            {view === "timeline" ? (
              <Timeline steps={steps} life={life} critical={result.criticalPath ?? NO_PATH} now={now} selected={selected} onSelect={select} />
            ) : null}
            {view === "graph" ? (
              <div className="panel large-graph">
                <Suspense fallback={<Loading what="the graph" />}>
                  <GraphView steps={graph} selected={selected} onSelect={select} direction="right" />
                </Suspense>
              </div>
            ) : null}
            {view === "log" ? <EventLog life={life} /> : null}
          </div>
        </div>
        <aside>
          {step ? (
            <StepPanel
              key={step.id}
              plan={plan}
              run={run}
              runStatus={result.status}
              step={step}
              waiting={inbox.find((item) => item.planId === plan && item.runId === run && item.step === step.id)}
              worker={waits.find((wait) => wait.step === step.id)?.words ?? null}
              who={who}
              now={now}
            />
          ) : (
            <section className="panel">
              <p className="quiet">Choose a step to see what was sent and what came back.</p>
            </section>
          )}
        </aside>
      </div>
      {sheet === "undo" ? <UndoSheet plan={plan} run={run} onClose={() => setSheet(null)} /> : null}
      {sheet === "fail" ? <FailSheet plan={plan} run={run} onClose={() => setSheet(null)} /> : null}
    </div>
  );
}

/** Steps that no worker can take: the run goes on when a worker comes that can. */
function Stuck({ waits }: { waits: Wait[] }): ReactNode {
  if (waits.length === 0) return null;
  const reasons = [...new Set(waits.map((wait) => wait.words))];
  return (
    <div className="notice" role="status">
      <p>
        <b>No worker can take {waits.length === 1 ? "a step" : count(waits.length, "step")} of this run.</b> <Text text={reasons.join(" ")} />
      </p>
      <Link className="button" to={{ page: "workers" }}>
        Look at the workers
      </Link>
    </div>
  );
}

/** What a model said about the run before its end, and what has to be agreed to before the work goes on. */
function Reflection({ plan, result, proposed }: { plan: string; result: RunResult; proposed: number | null }): ReactNode {
  const { reflection } = result;
  if (!reflection) return null;
  return (
    <div className="notice">
      <p>
        A model looked at it: <b>{reflection.assessment.replaceAll("_", " ")}</b>. <Quote text={reflection.reasoning} />
      </p>
      {result.status === "adjusted" && proposed !== null && !result.continues ? (
        <Link className="button accent" to={{ page: "review", plan }}>
          Review version {proposed}
        </Link>
      ) : null}
    </div>
  );
}

/** What waits for a person comes first, then what went wrong, then what is being done. */
function firstThatMatters(steps: { id: string; status: string }[]): string | null {
  for (const tone of ["ask", "bad", "active"]) {
    const found = steps.find((step) => stateWord(step.status).tone === tone);
    if (found) return found.id;
  }
  return steps.at(-1)?.id ?? null;
}
