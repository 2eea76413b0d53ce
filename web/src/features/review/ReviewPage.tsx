// A plan before its yes: what is asked, what will change, and whether it can be taken back.
import { lazy, Suspense, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { planPath, post } from "../../api/client";
import { usePlanEvents } from "../../api/live";
import { refreshPlan, useBriefing, usePlan, useThreads, useWhoami } from "../../api/queries";
import type { Briefing, Plan, RunAccepted, StepBriefing, Thread } from "../../api/types";
import { may, whyNot } from "../../model/access";
import { consequence, effectMark, groupSteps } from "../../model/briefing";
import type { GraphStep } from "../../model/graph";
import { noteSeen, NOTHING_SEEN, progress, type Progress, type Seen } from "../../model/seen";
import { ago } from "../../model/time";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { useAction, useNow } from "../../ui/hooks";
import { useKeys } from "../../ui/keys";
import { LiveMark } from "../../ui/LiveMark";
import { Link, navigate } from "../../ui/router";
import { Loading, ProblemNote, State } from "../../ui/States";
import { Digest, Quote, Text } from "../../ui/Text";
import { BriefingList } from "./BriefingList";
import { Changes, Safeguards } from "./Changes";
import { Discussion } from "./Comments";
import { ApproveSheet, SendBackSheet } from "./DecideSheets";
import { toolOf } from "./StepCard";

const GraphView = lazy(() => import("../graph/GraphView"));
const EditPlan = lazy(() => import("./EditPlan"));

type Tab = "steps" | "edit" | "changes" | "comments" | "runs";

export function ReviewPage({ id }: { id: string }): ReactNode {
  const live = usePlanEvents(
    id,
    () => refreshPlan(id),
    () => refreshPlan(id),
  );
  const loaded = usePlan(id, live === "reconnecting");
  const newest = useBriefing(id, loaded.data?.plan.digest);
  const threads = useThreads(id);
  // What is on screen stays there until the reader asks for what is newer.
  const [pinned, setPinned] = useState<Briefing | null>(null);
  const fresh = newest.data && newest.data.digest === loaded.data?.plan.digest ? newest.data : null;
  useEffect(() => {
    if (fresh !== null) setPinned((before) => before ?? fresh);
  }, [fresh]);
  // A service that is away for a moment takes nothing off the screen.
  if (loaded.error && !loaded.data) return <ProblemNote error={loaded.error} onRetry={() => void loaded.refetch()} />;
  if (newest.error && pinned === null) return <ProblemNote error={newest.error} onRetry={() => void newest.refetch()} />;
  if (!loaded.data || pinned === null) return <Loading what="the plan" lines={6} />;
  return (
    <Review
      plan={loaded.data.plan}
      etag={loaded.data.etag}
      briefing={pinned}
      newer={fresh !== null && (fresh.digest !== pinned.digest || fresh.version !== pinned.version) ? fresh : null}
      stale={fresh === null}
      onShowNewest={(briefing) => setPinned(briefing)}
      threads={threads.data ?? []}
      live={<LiveMark state={live} />}
    />
  );
}

type Props = {
  plan: Plan;
  etag: string | null;
  briefing: Briefing;
  newer: Briefing | null;
  stale: boolean;
  onShowNewest: (briefing: Briefing) => void;
  threads: Thread[];
  live: ReactNode;
};

const DECIDABLE = new Set(["proposed", "needs_review"]);

function Review({ plan, etag, briefing, newer, stale, onShowNewest, threads, live }: Props): ReactNode {
  const who = useWhoami().data;
  const now = useNow();
  const [tab, setTab] = useState<Tab>("steps");
  const [seen, setSeen] = useState<Seen>(NOTHING_SEEN);
  const [open, setOpen] = useState(() => groupSteps(briefing).changing.length === 0);
  const [selected, setSelected] = useState<string | null>(null);
  const [sheet, setSheet] = useState<"approve" | "reject" | "request-changes" | "graph" | null>(null);
  const saved = useRef(false);
  const read = useMemo(() => progress(seen, briefing), [seen, briefing]);
  const decidable = DECIDABLE.has(plan.status);
  const blocked = whyNotYet(plan, read, newer !== null || stale, whyNot(who, "approve"));
  const goTo = (step: string) => {
    setTab("steps");
    if (groupSteps(briefing).others.some((other) => other.id === step)) setOpen(true);
    setSelected(step);
    scrollToStep(step, selected === step);
  };
  const next = () => {
    if (read.next !== null) goTo(read.next);
  };
  const showNewest = () => {
    if (newer === null) return;
    saved.current = false;
    onShowNewest(newer);
  };
  // What the reader stored is what the reader wants to see.
  useEffect(() => {
    if (newer !== null && saved.current) {
      saved.current = false;
      onShowNewest(newer);
    }
  }, [newer, onShowNewest]);
  const run = useAction(async () => {
    const begun = await post<RunAccepted>(planPath(plan.id, "/run"));
    refreshPlan(plan.id);
    navigate({ page: "run", plan: plan.id, run: begun.runId });
  });
  const propose = useAction(async () => {
    await post(planPath(plan.id, "/propose"), undefined);
    refreshPlan(plan.id);
  });
  useKeys([
    { key: "n", words: "next step that you have not seen", run: next },
    { key: "a", words: "approve, once everything was on screen", run: () => setSheet("approve"), enabled: decidable && blocked === null },
    { key: "r", words: "request changes", run: () => setSheet("request-changes"), enabled: decidable && may(who, "approve") },
    { key: "e", words: "edit the plan", run: () => setTab("edit"), enabled: may(who, "propose") },
    { key: "g", words: "show the graph", run: () => setSheet("graph") },
  ]);
  const graph = useMemo(() => briefing.steps.map((step) => graphStep(step)), [briefing]);
  const running = plan.runs.find((line) => ["executing", "waiting", "paused", "stalled"].includes(line.status));
  const openThreads = threads.filter((thread) => thread.state !== "resolved").length;
  return (
    <div className="page review">
      <header className="page-head">
        <div>
          <h1>
            <Text text={briefing.title || briefing.goal || plan.id} />
          </h1>
          <p className="meta">
            <State state={plan.status} /> · version {briefing.version}
            {briefing.proposedBy ? (
              <>
                {" "}
                · by <Text text={briefing.proposedBy} />
              </>
            ) : null}
            {briefing.writtenByModel ? (
              <>
                {" "}
                · <span className="tag">written by a model: <Text text={briefing.writtenByModel} /></span>
              </>
            ) : null}{" "}
            · <Digest digest={briefing.digest} /> · {live}
          </p>
          {briefing.goal && briefing.title ? (
            <p className="goal">
              Goal: <Quote text={briefing.goal} />
            </p>
          ) : null}
        </div>
      </header>
      <p className="consequence">
        <Text text={consequence(briefing)} />
      </p>
      {newer !== null ? (
        <div className="notice" role="status">
          <p>
            Version {newer.version} is there{newer.digest === briefing.digest ? ", with other words and the same calls" : " and does something else"}. You still see version{" "}
            {briefing.version}.
          </p>
          <Button onClick={showNewest}>Show version {newer.version}</Button>
        </div>
      ) : null}
      {read.changed.length > 0 ? (
        <div className="notice">
          <p>
            {read.changed.length === 1 ? "1 step" : `${read.changed.length} steps`} changed since you looked: <Text text={read.changed.join(", ")} />.
          </p>
          <Button onClick={next}>Show</Button>
        </div>
      ) : null}
      <Safeguards losses={plan.lostSafeguards?.losses ?? []} />
      {briefing.risks.length > 0 ? (
        <div className="notice">
          <p>
            The author names risks: <Quote text={briefing.risks.join("; ")} />
          </p>
        </div>
      ) : null}
      <div className="columns">
        <div>
          <div className="tabs" role="tablist" aria-label="Views of the plan">
            <TabButton tab="steps" now={tab} set={setTab} words="What it does" />
            {may(who, "propose") ? <TabButton tab="edit" now={tab} set={setTab} words="Edit" /> : null}
            <TabButton tab="changes" now={tab} set={setTab} words="Changes" />
            <TabButton tab="comments" now={tab} set={setTab} words={`Comments${openThreads > 0 ? ` ${openThreads}` : ""}`} />
            <TabButton tab="runs" now={tab} set={setTab} words={`Runs${plan.runs.length > 0 ? ` ${plan.runs.length}` : ""}`} />
          </div>
          <div role="tabpanel" aria-label={tab}>
            {tab === "steps" ? (
              <BriefingList
                plan={plan}
                briefing={briefing}
                threads={threads}
                seen={seen}
                selected={selected}
                open={open}
                onOpen={setOpen}
                mayComment={may(who, "comment")}
                onSeen={(step) => setSeen((before) => noteSeen(before, step))}
              />
            ) : null}
            {tab === "edit" ? (
              <Suspense fallback={<Loading what="the editor" />}>
                <EditPlan
                  plan={plan}
                  etag={etag}
                  onSaved={() => {
                    saved.current = true;
                    setTab("steps");
                    refreshPlan(plan.id);
                  }}
                />
              </Suspense>
            ) : null}
            {tab === "changes" ? <Changes plan={plan} mayEdit={may(who, "propose")} /> : null}
            {tab === "comments" ? <Discussion plan={plan.id} threads={threads} mayComment={may(who, "comment")} /> : null}
            {tab === "runs" ? <Runs plan={plan} now={now} /> : null}
          </div>
        </div>
        <aside>
          <section className="panel" aria-label="Graph">
            <header className="row">
              <h2>Graph</h2>
              <span className="grow" />
              <Button tone="quiet" onClick={() => setSheet("graph")} keyHint="g">
                Larger
              </Button>
            </header>
            <Suspense fallback={<Loading what="the graph" lines={3} />}>
              <GraphView steps={graph} selected={selected} onSelect={goTo} />
            </Suspense>
          </section>
          <Facts plan={plan} briefing={briefing} />
        </aside>
      </div>
      <footer className="decide" aria-label="Decision">
        {decidable ? (
          <>
            <p>
              <progress max={read.total} value={read.seen} aria-label="Steps seen" /> <span className="nowrap">{read.seen} of {read.total} seen</span>
              {blocked !== null ? <span className="quiet why"> {blocked}</span> : null}
            </p>
            <span className="grow" />
            {read.next !== null ? (
              <Button onClick={next} keyHint="n">
                Next unseen
              </Button>
            ) : null}
            <Button onClick={() => setSheet("request-changes")} why={whyNot(who, "approve")} keyHint="r">
              Request changes
            </Button>
            <Button tone="danger" onClick={() => setSheet("reject")} why={whyNot(who, "approve")}>
              Reject
            </Button>
            <Button tone="accent" onClick={() => setSheet("approve")} why={blocked} keyHint="a">
              Approve …
            </Button>
          </>
        ) : (
          <>
            <p>
              <State state={plan.status} /> <ProblemNote error={run.error ?? propose.error} />
            </p>
            <span className="grow" />
            {running ? (
              <Link className="button accent" to={{ page: "run", plan: plan.id, run: running.id }}>
                Watch the run
              </Link>
            ) : null}
            {plan.status === "approved" ? (
              <Button tone="accent" busy={run.busy} why={whyNot(who, "run")} onClick={() => void run.run()}>
                Run
              </Button>
            ) : null}
            {["draft", "expired"].includes(plan.status) ? (
              <Button tone="accent" busy={propose.busy} why={whyNot(who, "propose")} onClick={() => void propose.run()}>
                Propose
              </Button>
            ) : null}
          </>
        )}
      </footer>
      {sheet === "approve" ? <ApproveSheet plan={plan} briefing={briefing} who={who} onClose={() => setSheet(null)} /> : null}
      {sheet === "reject" || sheet === "request-changes" ? (
        <SendBackSheet plan={plan.id} digest={briefing.digest} kind={sheet} onClose={() => setSheet(null)} />
      ) : null}
      {sheet === "graph" ? (
        <Dialog title="Graph" wide onClose={() => setSheet(null)}>
          <div className="large-graph">
            <Suspense fallback={<Loading what="the graph" />}>
              <GraphView
                steps={graph}
                direction="right"
                selected={selected}
                onSelect={(step) => {
                  setSheet(null);
                  goTo(step);
                }}
              />
            </Suspense>
          </div>
        </Dialog>
      ) : null}
    </div>
  );
}

function whyNotYet(plan: Plan, read: Progress, outdated: boolean, role: string | null): string | null {
  if (role !== null) return role;
  if (!DECIDABLE.has(plan.status)) return "The plan waits for no decision.";
  if (outdated) return "Another version is there: look at it first.";
  if (read.next !== null) return "Approve works once every step was on screen.";
  return null;
}

/** Brings a step to the top; one that is there already is read on, a screen further. */
function scrollToStep(step: string, again: boolean): void {
  requestAnimationFrame(() => {
    const card = document.getElementById(`step-${step}`);
    if (card === null) return;
    const box = card.getBoundingClientRect();
    if (again && box.bottom > window.innerHeight - 64) window.scrollBy({ top: window.innerHeight * 0.7 });
    else {
      card.scrollIntoView({ block: "start" });
      card.focus({ preventScroll: true });
    }
  });
}

function graphStep(step: StepBriefing): GraphStep {
  return { id: step.id, after: step.after, title: step.title ?? "", tool: toolOf(step), state: step.effect.kind, mark: effectMark(step.effect.kind).glyph };
}

function TabButton({ tab, now, set, words }: { tab: Tab; now: Tab; set: (tab: Tab) => void; words: string }): ReactNode {
  return (
    <button type="button" role="tab" aria-selected={tab === now} onClick={() => set(tab)}>
      {words}
    </button>
  );
}

function Runs({ plan, now }: { plan: Plan; now: number }): ReactNode {
  if (plan.runs.length === 0) return <p className="quiet">It was never run.</p>;
  return (
    <ul className="lines">
      {plan.runs.toReversed().map((run) => (
        <li key={run.id}>
          <Link to={{ page: "run", plan: plan.id, run: run.id }}>{run.id}</Link> <State state={run.status} /> version {run.version}{" "}
          <span className="quiet">{ago(run.startedAt, now)}</span>
          {run.undoes ? <span className="tag">undoes {run.undoes}</span> : null}
        </li>
      ))}
    </ul>
  );
}

function Facts({ plan, briefing }: { plan: Plan; briefing: Briefing }): ReactNode {
  const asks = plan.policy.filter((verdict) => verdict.verdict === "ask");
  const denied = plan.policy.filter((verdict) => verdict.verdict === "deny");
  const given = plan.approvals.filter((approval) => approval.digest === briefing.digest && approval.state !== "used");
  const changing = groupSteps(briefing).changing;
  return (
    <section className="panel" aria-label="Facts">
      <h2>Facts</h2>
      <dl className="facts">
        <div>
          <dt>policy</dt>
          <dd>
            {asks.length === 0 ? "asks about nothing" : `asks about ${asks.length} of ${plan.policy.length} steps`}
            {denied.length > 0 ? <b className="bad"> · forbids <Text text={denied.map((verdict) => verdict.step).join(", ")} /></b> : null}
          </dd>
        </div>
        {changing.length > 0 ? (
          <div>
            <dt>undo</dt>
            <dd>
              {changing.map((step) => (
                <span key={step.id} className="nowrap">
                  <Text text={step.id} /> {step.undo ? "✓" : "✗"}
                  <span className="only-read">{step.undo ? " can be undone" : " cannot be undone"}</span>{" "}
                </span>
              ))}
            </dd>
          </div>
        ) : null}
        {given.map((approval) => (
          <div key={`${approval.by.name}${approval.at}`}>
            <dt>approval</dt>
            <dd>
              <Text text={approval.by.name} />, {approval.state}; {approval.required} needed
            </dd>
          </div>
        ))}
        {briefing.callTimeoutSeconds != null ? (
          <div>
            <dt>a call takes</dt>
            <dd>at most {briefing.callTimeoutSeconds} s</dd>
          </div>
        ) : null}
        {plan.planning ? (
          <div>
            <dt>written by</dt>
            <dd>
              <Text text={plan.planning.model ?? "a model"} />
              {plan.planning.costUsd != null ? `, ${plan.planning.costUsd.toFixed(3)} $` : ""}
            </dd>
          </div>
        ) : null}
      </dl>
    </section>
  );
}
