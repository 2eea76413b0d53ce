// One step of a run: what it waits for, what was sent, what came back, and what a person can do.
import { useState, type ReactNode } from "react";
import { planPath, post, stepPath } from "../../api/client";
import { refreshPlan } from "../../api/queries";
import type { Json, RunAccepted, StepResult, Waiting, Whoami } from "../../api/types";
import { may, whyNot, type Act } from "../../model/access";
import { actionsFor, logLines, type StepAction, type StepLife } from "../../model/run";
import { duration, until } from "../../model/time";
import { shortDigest } from "../../model/text";
import { Button } from "../../ui/Button";
import { FileDiff } from "../../ui/Diff";
import { useAction } from "../../ui/hooks";
import { Link, navigate } from "../../ui/router";
import { ProblemNote, State } from "../../ui/States";
import { Arguments, isShownWhole, Quote, Text, Value } from "../../ui/Text";
import { AnswerForm } from "./AnswerForm";
import { Large, Preview } from "./ValueView";

type Props = {
  plan: string;
  run: string;
  runStatus: string;
  step: StepResult & { life: StepLife | null };
  waiting: Waiting | undefined;
  /** Why no worker has it, if it waits for one. */
  worker: string | null;
  who: Whoami | undefined;
  now: number;
};

const ACTS: Record<StepAction, Act> = { approve: "approve", deny: "approve", answer: "resolve", resolve: "resolve", skip: "resolve", retry: "run", fork: "run" };

export function StepPanel({ plan, run, runStatus, step, waiting, worker, who, now }: Props): ReactNode {
  const actions = actionsFor(step.status, runStatus);
  const again = useAction(async (action: "retry" | "fork") => {
    const begun =
      action === "retry"
        ? await post<RunAccepted>(stepPath(plan, step.id, "retry"), { run })
        : await post<RunAccepted>(planPath(plan, "/fork"), { run, from: [step.id] });
    refreshPlan(plan);
    navigate({ page: "run", plan, run: begun.runId });
  });
  // What is asked says itself why.
  const lines = logLines(step);
  const note = step.error?.message ?? (step.status === "completed" || actions.includes("approve") ? null : step.life?.note);
  return (
    <section className="panel step-panel" aria-label={`Step ${step.id}`}>
      <header>
        <h2>
          <Text text={step.id} />
        </h2>
        <State state={step.status} />
      </header>
      {step.title ? (
        <p>
          <Quote text={step.title} />
        </p>
      ) : null}
      <dl className="facts">
        <div>
          <dt>tool</dt>
          <dd>
            <code>
              <Text text={step.tool} />
            </code>
          </dd>
        </div>
        <div>
          <dt>attempts</dt>
          <dd>
            {step.attempts}
            {step.durationMs > 0 ? `, took ${duration(step.durationMs)}` : ""}
          </dd>
        </div>
        {waiting?.expiresAt ? (
          <div>
            <dt>expires</dt>
            <dd>{until(waiting.expiresAt, now)}</dd>
          </div>
        ) : null}
      </dl>
      {note ? (
        <p className={step.error ? "bad" : "quiet"}>
          {step.error ? <b>{step.error.code}: </b> : null}
          <Text text={note} />
        </p>
      ) : null}
      {worker !== null ? (
        <p className="asks">
          <Text text={worker} />
        </p>
      ) : step.status === "running" && step.life?.progress?.message ? (
        <p className="quiet" role="status">
          <Text text={step.life.progress.message} />
        </p>
      ) : null}
      {actions.includes("approve") ? <ApproveCall plan={plan} run={run} step={step} waiting={waiting} who={who} /> : null}
      {actions.includes("answer") && waiting?.questions ? (
        <AnswerForm plan={plan} run={run} step={step.id} questions={waiting.questions} digest={waiting.digest} why={whyNot(who, "resolve")} />
      ) : null}
      {actions.includes("resolve") ? <Resolve plan={plan} run={run} step={step.id} why={whyNot(who, "resolve")} /> : null}
      {actions.includes("skip") ? <Skip plan={plan} run={run} step={step.id} why={whyNot(who, "resolve")} /> : null}
      <div className="row">
        {actions.includes("retry") ? (
          <Button busy={again.busy} why={whyNot(who, ACTS.retry)} onClick={() => void again.run("retry")}>
            Retry
          </Button>
        ) : null}
        {actions.includes("fork") && may(who, ACTS.fork) ? (
          <Button tone="quiet" busy={again.busy} onClick={() => void again.run("fork")}>
            Fork from here
          </Button>
        ) : null}
        {actions.includes("retry") && may(who, "propose") ? (
          <Button tone="quiet" onClick={() => navigate({ page: "review", plan, edit: step.id })}>
            Change the step …
          </Button>
        ) : null}
      </div>
      <ProblemNote error={again.error} />
      {again.error ? (
        <p>
          <Link to={{ page: "review", plan }}>Look at the plan, and approve it again</Link>
        </p>
      ) : null}
      {step.value !== undefined ? (
        <Part title="Value">
          <Preview value={step.value} at={{ plan, run }} />
        </Part>
      ) : null}
      {step.largeValue ? (
        <Part title="Value">
          <Large large={step.largeValue} name={`${run}-${step.id}`} />
        </Part>
      ) : null}
      {step.args !== undefined ? (
        <Part title="Arguments, as they were sent">
          <Arguments args={step.args} />
        </Part>
      ) : null}
      {lines.length > 0 ? (
        <Part title="What the server logged">
          <ol className="log">
            {lines.map((line, index) => (
              <li key={index}>
                <span className="quiet">{line.level}</span> <Text text={line.text} />
              </li>
            ))}
          </ol>
        </Part>
      ) : null}
      {step.items && step.items.length > 0 ? (
        <Part title={`Elements (${step.items.length})`}>
          <ul className="lines">
            {step.items.slice(0, 200).map((item) => (
              <li key={item.index}>
                <b>{item.index}</b> <State state={item.status} /> {item.error ? <Text text={item.error.message} /> : null}
                {item.value !== undefined ? <Value value={item.value} /> : null}
              </li>
            ))}
          </ul>
        </Part>
      ) : null}
    </section>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }): ReactNode {
  return (
    <details className="part" open>
      <summary>{title}</summary>
      {children}
    </details>
  );
}

/** A yes to exactly the call that is shown, or a no. */
function ApproveCall({ plan, run, step, waiting, who }: { plan: string; run: string; step: StepResult; waiting: Waiting | undefined; who: Whoami | undefined }): ReactNode {
  const call = waiting?.call ?? step.call ?? null;
  const briefed = call === null ? waiting?.briefing?.steps[0] : undefined;
  const args: Json | undefined = call?.args ?? (briefed?.action.kind === "call" ? briefed.action.args : undefined);
  const digest = call?.digest ?? waiting?.digest ?? null;
  const large = call?.largeArgs ?? null;
  const [left, setLeft] = useState(() => countLong(args));
  const [readLarge, setReadLarge] = useState(false);
  const [denying, setDenying] = useState(false);
  const [reason, setReason] = useState("");
  const decide = useAction(async (yes: boolean) => {
    const body = yes ? { decision: "approve", digest, run } : { decision: "reject", digest, reason };
    await post(stepPath(plan, step.id, yes ? "approve" : "reject"), body);
    refreshPlan(plan);
  });
  const why = whyNot(who, "approve") ?? (digest === null ? "Loading what is asked." : left > 0 || (large && !readLarge) ? "Show all of it first." : null);
  return (
    <div className="asked">
      <p>
        <b>Waits for you:</b> <Text text={call?.reason ?? briefed?.reason ?? "the plan asks before this step"} />
      </p>
      {briefed ? (
        <p className={`effect ${briefed.effect.kind}`}>
          <Text text={briefed.effect.words} />
        </p>
      ) : null}
      {args !== undefined ? <Arguments args={args} onWhole={() => setLeft((n) => n - 1)} /> : null}
      {briefed?.action.kind === "call" && briefed.action.file ? <FileDiff file={briefed.action.file} /> : null}
      {large ? <Large large={large} name={`${run}-${step.id}-arguments`} onWhole={() => setReadLarge(true)} /> : null}
      {denying ? (
        <div className="stack">
          <label htmlFor="deny-reason">Why not?</label>
          <textarea id="deny-reason" rows={2} value={reason} onChange={(event) => setReason(event.target.value)} />
          <div className="row">
            <Button tone="danger" busy={decide.busy} onClick={() => void decide.run(false)}>
              Deny this call
            </Button>
            <Button tone="quiet" onClick={() => setDenying(false)}>
              Back
            </Button>
          </div>
        </div>
      ) : (
        <div className="row">
          <Button tone="accent" busy={decide.busy} why={why} onClick={() => void decide.run(true)}>
            Approve this call {digest ? <code>{shortDigest(digest)}</code> : null}
          </Button>
          <Button tone="danger" why={whyNot(who, "approve")} onClick={() => setDenying(true)}>
            Deny …
          </Button>
        </div>
      )}
      <ProblemNote error={decide.error} />
    </div>
  );
}

function countLong(args: Json | undefined): number {
  if (args === undefined) return 0;
  if (typeof args !== "object" || args === null || Array.isArray(args)) return isShownWhole(args) ? 0 : 1;
  return Object.values(args).filter((value) => !isShownWhole(value)).length;
}

function Resolve({ plan, run, step, why }: { plan: string; run: string; step: string; why: string | null }): ReactNode {
  const resolve = useAction(async (outcome: string) => {
    await post(stepPath(plan, step, "resolve"), { outcome, run });
    refreshPlan(plan);
  });
  return (
    <div className="asked">
      <p>
        <b>Did it happen?</b> The call was interrupted, and it is not known whether it had its effect. Look, then say:
      </p>
      <div className="row">
        <Button busy={resolve.busy} why={why} onClick={() => void resolve.run("happened")}>
          It happened
        </Button>
        <Button busy={resolve.busy} why={why} onClick={() => void resolve.run("did_not_happen")}>
          It did not
        </Button>
        <Button tone="danger" busy={resolve.busy} why={why} onClick={() => void resolve.run("run_again")}>
          Call it again
        </Button>
      </div>
      <ProblemNote error={resolve.error} />
    </div>
  );
}

function Skip({ plan, run, step, why }: { plan: string; run: string; step: string; why: string | null }): ReactNode {
  const skip = useAction(async () => {
    await post(stepPath(plan, step, "skip"), { run });
    refreshPlan(plan);
  });
  return (
    <div>
      <Button tone="quiet" busy={skip.busy} why={why} onClick={() => void skip.run()}>
        Skip this step
      </Button>
      <ProblemNote error={skip.error} />
    </div>
  );
}
