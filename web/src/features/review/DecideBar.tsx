// The bar at the bottom of a review: how far the reader is, and what can be decided or done now.
import type { ReactNode } from "react";
import { planPath, post } from "../../api/client";
import { readRun, refreshPlan } from "../../api/queries";
import type { Plan, RunAccepted, Whoami } from "../../api/types";
import { whyNot } from "../../model/access";
import type { Progress } from "../../model/seen";
import { count } from "../../model/text";
import { Button } from "../../ui/Button";
import { useAction } from "../../ui/hooks";
import { Link, navigate } from "../../ui/router";
import { ProblemNote, State } from "../../ui/States";
import { UsePasskey } from "../../ui/UsePasskey";

export const DECIDABLE = new Set(["proposed", "needs_review"]);
/** An approval that was used up is given again for another run. */
export const REPEATABLE = new Set(["completed", "completed_with_failures", "failed", "cancelled"]);

/** Why a yes is not possible now, or `null` if it is. */
export function whyNotYet(plan: Plan, read: Progress, outdated: boolean, role: string | null): string | null {
  if (role !== null) return role;
  if (!DECIDABLE.has(plan.status) && !REPEATABLE.has(plan.status)) return "The plan is not waiting for a decision.";
  if (outdated) return "There is a newer version: review it first.";
  // The service knows what would stand in the way: errors in the plan, four eyes, an approval that was given.
  if (DECIDABLE.has(plan.status) && !plan.approval.mayApprove) return sentence(plan.approval.reason ?? "it would not be taken");
  if (read.next !== null) return "You can approve once every step has been on screen.";
  return null;
}

function sentence(words: string): string {
  return `You cannot approve it: ${words}.`;
}

type Props = {
  plan: Plan;
  who: Whoami | undefined;
  read: Progress;
  blocked: string | null;
  onNext: () => void;
  onSheet: (sheet: "approve" | "reject" | "request-changes") => void;
};

export function DecideBar(props: Props): ReactNode {
  return (
    <footer className="decide" aria-label="Decision">
      {DECIDABLE.has(props.plan.status) ? <Decisions {...props} /> : <NextSteps {...props} />}
    </footer>
  );
}

function Decisions({ plan, who, read, blocked, onNext, onSheet }: Props): ReactNode {
  return (
    <>
      <p>
        <progress max={read.total} value={read.seen} aria-label="Steps seen" /> <span className="nowrap">{read.seen} of {count(read.total, "step")} seen</span>
        {blocked !== null ? <span className="quiet why"> {blocked}</span> : null}
      </p>
      <span className="grow" />
      {read.next !== null ? (
        <Button onClick={onNext} keyHint="n">
          Next unseen
        </Button>
      ) : null}
      {plan.approval.reasonCode === "passkey_needed" ? <UsePasskey tone="accent" /> : null}
      <Button onClick={() => onSheet("request-changes")} why={whyNot(who, "approve")} keyHint="r">
        Request changes
      </Button>
      <Button tone="danger" onClick={() => onSheet("reject")} why={whyNot(who, "approve")}>
        Reject
      </Button>
      <Button tone="accent" onClick={() => onSheet("approve")} why={blocked} keyHint="a">
        Approve …
      </Button>
    </>
  );
}

/** What can be done with a plan that waits for no decision. */
function NextSteps({ plan, who, read, blocked, onNext, onSheet }: Props): ReactNode {
  const run = useAction(async () => {
    const begun = await post<RunAccepted>(planPath(plan.id, "/run"));
    refreshPlan(plan.id);
    navigate({ page: "run", plan: plan.id, run: begun.runId });
  });
  const goOn = useAction(async (before: string) => {
    const { steps } = await readRun(plan.id, before);
    const left = steps.filter((step) => !["completed", "skipped"].includes(step.status)).map((step) => step.id);
    const begun = await post<RunAccepted>(planPath(plan.id, "/fork"), { run: before, from: left });
    refreshPlan(plan.id);
    navigate({ page: "run", plan: plan.id, run: begun.runId });
  });
  const propose = useAction(async () => {
    await post(planPath(plan.id, "/propose"), undefined);
    refreshPlan(plan.id);
  });
  const running = plan.runs.find((line) => ["executing", "waiting", "paused", "stalled"].includes(line.status));
  // The newest run, if it left something undone that another one can take up.
  const unfinished = plan.runs.slice(-1).find((line) => ["failed", "cancelled", "completed_with_failures"].includes(line.status));
  return (
    <>
      <p>
        <State state={plan.status} /> <ProblemNote error={run.error ?? goOn.error ?? propose.error} />
      </p>
      <span className="grow" />
      {running ? (
        <Link className="button accent" to={{ page: "run", plan: plan.id, run: running.id }}>
          Watch the run
        </Link>
      ) : null}
      {REPEATABLE.has(plan.status) && read.next !== null ? (
        <Button onClick={onNext} keyHint="n">
          Next unseen
        </Button>
      ) : null}
      {REPEATABLE.has(plan.status) ? (
        <Button onClick={() => onSheet("approve")} why={blocked} keyHint="a">
          Approve again …
        </Button>
      ) : null}
      {plan.status === "approved" ? (
        <>
          {unfinished ? (
            <Button busy={goOn.busy} why={whyNot(who, "run")} onClick={() => void goOn.run(unfinished.id)}>
              Run what is left
            </Button>
          ) : null}
          <Button tone="accent" busy={run.busy} why={whyNot(who, "run")} onClick={() => void run.run()}>
            Run
          </Button>
        </>
      ) : null}
      {["draft", "expired"].includes(plan.status) ? (
        <Button tone="accent" busy={propose.busy} why={whyNot(who, "propose")} onClick={() => void propose.run()}>
          Propose
        </Button>
      ) : null}
    </>
  );
}
