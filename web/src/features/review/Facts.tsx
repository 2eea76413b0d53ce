// What is known about a plan besides its steps.
import type { ReactNode } from "react";
import type { Briefing, Plan } from "../../api/types";
import { groupSteps } from "../../model/briefing";
import { forecast } from "../../model/forecast";
import { count } from "../../model/text";
import { ago } from "../../model/time";
import { Link } from "../../ui/router";
import { State } from "../../ui/States";
import { Text } from "../../ui/Text";

export function Runs({ plan, now }: { plan: Plan; now: number }): ReactNode {
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

export function Facts({ plan, briefing }: { plan: Plan; briefing: Briefing }): ReactNode {
  const asks = plan.policy.filter((verdict) => verdict.verdict === "ask");
  const denied = plan.policy.filter((verdict) => verdict.verdict === "deny");
  const given = plan.approvals.filter((approval) => approval.digest === briefing.digest && approval.state !== "used");
  const changing = groupSteps(briefing).changing;
  const expected = forecast(plan);
  return (
    <section className="panel" aria-label="Facts">
      <h2>Facts</h2>
      <dl className="facts">
        <div>
          <dt>policy</dt>
          <dd>
            {asks.length === 0 ? "asks about nothing" : `asks about ${asks.length} of ${count(plan.policy.length, "step")}`}
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
        {expected === null ? null : (
          <div>
            <dt>a run takes</dt>
            <dd>{expected}</dd>
          </div>
        )}
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
