// The sheets in which a person says yes or no: to exactly what was on the screen.
import { useState, type ReactNode } from "react";
import { planPath, post } from "../../api/client";
import { readPlan, refreshPlan } from "../../api/queries";
import type { Briefing, Plan, PlanDecided, RunAccepted, Whoami } from "../../api/types";
import { may } from "../../model/access";
import { changesSomething, effectMark, lateSteps } from "../../model/briefing";
import { count, shortDigest } from "../../model/text";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { useAction } from "../../ui/hooks";
import { navigate } from "../../ui/router";
import { ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";

type Choice = { kind: "any" | "ask" | "only"; predicate: string };

export function ApproveSheet({ plan, briefing, who, onClose }: { plan: Plan; briefing: Briefing; who: Whoami | undefined; onClose: () => void }): ReactNode {
  const late = lateSteps(plan.policy, briefing);
  const [choices, setChoices] = useState<Record<string, Choice>>(() =>
    Object.fromEntries(late.map((step) => [step.step, { kind: step.ask || step.fallback === "ask" ? "ask" : "any", predicate: "" }])),
  );
  const mayRun = may(who, "run");
  // The work of an adjusted run goes on by itself once its new version is approved.
  const adjusted = plan.runs.slice(-1).find((line) => line.status === "adjusted");
  // What was run before is run again only if that is said.
  const [run, setRun] = useState(mayRun && plan.runs.length === 0);
  const [outcome, setOutcome] = useState<PlanDecided | null>(null);
  const approve = useAction(async () => {
    const said = Object.fromEntries(Object.entries(choices).map(([step, choice]) => [step, choice.kind === "only" ? choice.predicate : choice.kind]));
    const decided = outcome ?? (await post<PlanDecided>(planPath(plan.id, "/approve"), { decision: "approve", digest: briefing.digest, late: said }));
    setOutcome(decided);
    refreshPlan(plan.id);
    if (adjusted && decided.status === "approved") {
      const next = await nextRun(plan.id, adjusted.id);
      if (next !== null) navigate({ page: "run", plan: plan.id, run: next });
      else onClose();
      return;
    }
    if (run && decided.status === "approved") {
      const begun = await post<RunAccepted>(planPath(plan.id, "/run"));
      refreshPlan(plan.id);
      navigate({ page: "run", plan: plan.id, run: begun.runId });
      return;
    }
    onClose();
  });
  const given = plan.approvals.filter((approval) => approval.digest === briefing.digest && approval.state !== "used");
  const changing = briefing.steps.filter((step) => changesSomething(step.effect.kind));
  const missing = Object.values(choices).some((choice) => choice.kind === "only" && choice.predicate.trim() === "");
  const set = (step: string, choice: Choice) => setChoices((before) => ({ ...before, [step]: choice }));
  return (
    <Dialog title="Approve this plan" onClose={onClose} wide>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void approve.run();
        }}
      >
        {changing.length === 0 ? <p>{briefing.counts.steps === 1 ? "Its one step changes nothing." : `None of its ${briefing.counts.steps} steps changes anything.`}</p> : <p>If you approve, this may happen:</p>}
        <ul className="consequences">
          {changing.map((step) => (
            <li key={step.id} className={step.effect.kind}>
              <span className={`mark ${step.effect.kind}`} aria-hidden="true">
                {effectMark(step.effect.kind).glyph}
              </span>{" "}
              <b>
                <Text text={step.id} />
              </b>{" "}
              <Text text={step.effect.words} />
            </li>
          ))}
        </ul>
        {late.map((step) => {
          const choice = choices[step.step] ?? { kind: "ask", predicate: "" };
          return (
            <fieldset key={step.step}>
              <legend>
                <b>
                  <Text text={step.step} />
                </b>
                : <Text text={step.args.join(", ")} /> {step.args.length === 1 ? "is" : "are"} known only later
              </legend>
              <label className="radio">
                <input type="radio" name={`late-${step.step}`} checked={choice.kind === "ask"} onChange={() => set(step.step, { ...choice, kind: "ask" })} />
                Show me the real call first, and ask again
              </label>
              <label className="radio">
                <input type="radio" name={`late-${step.step}`} checked={choice.kind === "any"} onChange={() => set(step.step, { ...choice, kind: "any" })} />
                Any value will do
              </label>
              <label className="radio">
                <input type="radio" name={`late-${step.step}`} checked={choice.kind === "only"} onChange={() => set(step.step, { ...choice, kind: "only" })} />
                Only if this holds (CEL)
              </label>
              {choice.kind === "only" ? (
                <input
                  className="wide"
                  aria-label={`Condition for step ${step.step}`}
                  placeholder={'args.to.endsWith("@acme.org")'}
                  value={choice.predicate}
                  onChange={(event) => set(step.step, { kind: "only", predicate: event.target.value })}
                />
              ) : null}
            </fieldset>
          );
        })}
        {adjusted ? <p>The work goes on in another run as soon as it is approved.</p> : null}
        <label className="radio" hidden={adjusted !== undefined}>
          <input type="checkbox" checked={run} disabled={!mayRun} onChange={(event) => setRun(event.target.checked)} />
          Run it right away{mayRun ? "" : " (your role does not run plans)"}
        </label>
        {given.length > 0 ? (
          <p>
            {given.length} of {count(given[0]?.required ?? 1, "approval")} given, by <Text text={given.map((approval) => approval.by.name).join(", ")} />.
          </p>
        ) : null}
        <ProblemNote error={approve.error} />
        <div className="row end">
          <Button tone="quiet" onClick={onClose}>
            Not yet
          </Button>
          <Button type="submit" tone="accent" busy={approve.busy} disabled={missing}>
            Approve{adjusted ? " and go on" : run ? " and run" : ""} <code>{shortDigest(briefing.digest)}</code>
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

const TRIES = 20;
const PAUSE_MS = 250;

/** The run that came after this one; null if none has begun within a few seconds. */
async function nextRun(plan: string, before: string): Promise<string | null> {
  for (let left = TRIES; left > 0; left -= 1) {
    const last = (await readPlan(plan)).plan.runs.at(-1);
    if (last !== undefined && last.id !== before) return last.id;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return null;
}

/** Sends a plan back: with a wish, or for good. */
export function SendBackSheet({ plan, digest, kind, onClose }: { plan: string; digest: string; kind: "request-changes" | "reject"; onClose: () => void }): ReactNode {
  const [reason, setReason] = useState("");
  const reject = kind === "reject";
  const send = useAction(async () => {
    await post(planPath(plan, `/${kind}`), { digest, reason, ...(reject ? { decision: "reject" } : {}) });
    refreshPlan(plan);
    onClose();
  });
  return (
    <Dialog title={reject ? "Reject this plan" : "Request changes"} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void send.run();
        }}
      >
        <p className="quiet">
          {reject ? "The author reads your reason. After the third rejection a person has to step in." : "The author reads this and proposes another version. Nothing runs until then."}
        </p>
        <label htmlFor="reason">{reject ? "Why not?" : "What should be different?"}</label>
        <textarea id="reason" rows={4} maxLength={10_000} value={reason} onChange={(event) => setReason(event.target.value)} />
        <ProblemNote error={send.error} />
        <div className="row end">
          <Button tone="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" tone={reject ? "danger" : "accent"} busy={send.busy} disabled={!reject && reason.trim() === ""}>
            {reject ? "Reject" : "Request changes"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
