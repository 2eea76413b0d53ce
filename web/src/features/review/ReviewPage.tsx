// A plan before its yes: what is asked, what will change, and whether it can be taken back.
import { lazy, Suspense, useEffect, useMemo, useState, type ReactNode } from "react";
import { useReviewedPlan } from "../../api/live";
import { refreshPlan, useBriefing, usePlan, useThreads, useWhoami } from "../../api/queries";
import type { Briefing, Plan, StepBriefing, Thread } from "../../api/types";
import { may, whyNot } from "../../model/access";
import { consequence, effectMark, groupSteps } from "../../model/briefing";
import type { GraphStep } from "../../model/graph";
import { noteSeen, NOTHING_SEEN, progress, type Seen } from "../../model/seen";
import { count } from "../../model/text";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { useNow } from "../../ui/hooks";
import { useKeys } from "../../ui/keys";
import { LiveMark } from "../../ui/LiveMark";
import { Loading, ProblemNote, State } from "../../ui/States";
import { Digest, Quote, Text } from "../../ui/Text";
import { BriefingList } from "./BriefingList";
import { Changes, Safeguards, SinceAgreed } from "./Changes";
import { Discussion } from "./Comments";
import { DECIDABLE, DecideBar, REPEATABLE, whyNotYet } from "./DecideBar";
import { ApproveSheet, SendBackSheet } from "./DecideSheets";
import { Facts, Runs } from "./Facts";
import { toolOf } from "./StepCard";

const GraphView = lazy(() => import("../graph/GraphView"));
const EditPlan = lazy(() => import("./EditPlan"));

type Tab = "steps" | "edit" | "changes" | "comments" | "runs";

export function ReviewPage({ id, edit }: { id: string; edit: string | undefined }): ReactNode {
  const live = useReviewedPlan(id);
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
      startEditing={edit}
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
  startEditing: string | undefined;
  live: ReactNode;
};

function Review({ plan, etag, briefing, newer, stale, onShowNewest, threads, startEditing, live }: Props): ReactNode {
  const who = useWhoami().data;
  const now = useNow();
  const [tab, setTab] = useState<Tab>(startEditing === undefined ? "steps" : "edit");
  const [seen, setSeen] = useState<Seen>(NOTHING_SEEN);
  const [open, setOpen] = useState(() => groupSteps(briefing).changing.length === 0);
  const [selected, setSelected] = useState<string | null>(null);
  const [editing, setEditing] = useState<string | null>(startEditing ?? null);
  const [sheet, setSheet] = useState<"approve" | "reject" | "request-changes" | "graph" | null>(null);
  const [saved, setSaved] = useState(false);
  const read = useMemo(() => progress(seen, briefing), [seen, briefing]);
  const decidable = DECIDABLE.has(plan.status);
  const repeatable = REPEATABLE.has(plan.status);
  const blocked = whyNotYet(plan, read, newer !== null || stale, whyNot(who, "approve"));
  const openTab = (to: Tab) => {
    setEditing(null);
    setTab(to);
  };
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
    setSaved(false);
    onShowNewest(newer);
  };
  // What the reader stored is what the reader wants to see.
  useEffect(() => {
    if (newer === null || !saved) return;
    setSaved(false);
    onShowNewest(newer);
  }, [newer, saved, onShowNewest]);
  useKeys([
    { key: "n", words: "next step that you have not seen", run: next },
    { key: "a", words: "approve, once everything was on screen", run: () => setSheet("approve"), enabled: (decidable || repeatable) && blocked === null },
    { key: "r", words: "request changes", run: () => setSheet("request-changes"), enabled: decidable && may(who, "approve") },
    { key: "e", words: "edit the plan", run: () => openTab("edit"), enabled: may(who, "propose") },
    { key: "g", words: "show the graph", run: () => setSheet("graph") },
  ]);
  const graph = useMemo(() => briefing.steps.map((step) => graphStep(step)), [briefing]);
  const openThreads = threads.filter((thread) => thread.state !== "resolved").length;
  return (
    <div className={briefing.writtenByModel ? "page review by-model" : "page review"}>
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
          {decidable ? <p className="meta">{whoDecides(plan, briefing, whyNot(who, "approve"))}</p> : null}
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
            {count(read.changed.length, "step")} changed since you looked: <Text text={read.changed.join(", ")} />.
          </p>
          <Button onClick={next}>Show</Button>
        </div>
      ) : null}
      <Safeguards losses={plan.lostSafeguards?.losses ?? []} />
      <SinceAgreed changes={plan.changes} />
      {plan.runRequested ? (
        <div className="notice">
          <p>
            <Text text={plan.runRequested.by.name} /> wants it run as soon as it is approved: an approval starts it.
          </p>
        </div>
      ) : null}
      {briefing.risks.length > 0 ? (
        <div className="notice">
          <p>
            The author names risks: <Quote text={briefing.risks.join("; ")} />
          </p>
        </div>
      ) : null}
      {Object.keys(briefing.outputs ?? {}).length > 0 ? (
        <div className="notice">
          <p>
            The plan gives back <Text text={JSON.stringify(briefing.outputs)} />
          </p>
        </div>
      ) : null}
      <div className="columns">
        <div>
          <div className="tabs" role="tablist" aria-label="Views of the plan">
            <TabButton tab="steps" now={tab} set={setTab} words="What it does" />
            {may(who, "propose") ? <TabButton tab="edit" now={tab} set={openTab} words="Edit" /> : null}
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
                {...(may(who, "propose")
                  ? {
                      onEdit: (step: string) => {
                        setEditing(step);
                        setTab("edit");
                      },
                    }
                  : {})}
              />
            ) : null}
            {tab === "edit" ? (
              <Suspense fallback={<Loading what="the editor" />}>
                <EditPlan
                  plan={plan}
                  etag={etag}
                  at={editing}
                  onSaved={() => {
                    setSaved(true);
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
      <DecideBar plan={plan} who={who} read={read} blocked={blocked} onNext={next} onSheet={setSheet} />
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

/** How many have to agree, and whether the reader is one of them. */
function whoDecides(plan: Plan, briefing: Briefing, role: string | null): string {
  const given = plan.approvals.filter((approval) => approval.digest === briefing.digest && approval.state !== "used");
  const required = given[0]?.required;
  const needs = required === undefined ? "" : `${given.length} of ${count(required, "approval")} given · `;
  return `${needs}${role ?? "You may decide."}`;
}

/** Brings a step to the top; one that already exists is read on, a screen further. */
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
