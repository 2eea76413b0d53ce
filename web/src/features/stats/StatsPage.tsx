import { useMemo, useState, type ReactNode } from "react";
import { usePlans, useStats } from "../../api/queries";
import type { DayLine, Stats } from "../../api/types";
import { stateWord } from "../../model/run";
import { countedByDay, dayOf, lastDays, plansByDay } from "../../model/series";
import { count } from "../../model/text";
import { duration } from "../../model/time";
import { useNow } from "../../ui/hooks";
import { Plot } from "../../ui/Plot";
import { Loading, ProblemNote, State } from "../../ui/States";
import { Text } from "../../ui/Text";

export default function StatsPage(): ReactNode {
  const [days, setDays] = useState<number | null>(null);
  const stats = useStats(days);
  return (
    <div className="page">
      <header className="page-head">
        <h1>Stats</h1>
        <label>
          Since{" "}
          <select value={days ?? ""} onChange={(event) => setDays(event.target.value === "" ? null : Number(event.target.value))}>
            <option value="">the beginning</option>
            <option value="1">a day ago</option>
            <option value="7">a week ago</option>
            <option value="30">a month ago</option>
          </select>
        </label>
      </header>
      {stats.isPending ? <Loading what="the figures" /> : null}
      {stats.error ? <ProblemNote error={stats.error} onRetry={() => void stats.refetch()} /> : null}
      <OverTime days={days ?? 30} counted={stats.data?.days ?? []} />
      {stats.data ? <Figures stats={stats.data} /> : null}
    </div>
  );
}

const PAGES_OF_PLANS = 5;

/** Day by day: what became of the newest plans, and what the service counted. */
function OverTime({ days, counted }: { days: number; counted: DayLine[] }): ReactNode {
  const now = useNow(60_000);
  const plans = usePlans("", PAGES_OF_PLANS);
  const today = dayOf(now);
  const shown = useMemo(() => lastDays(Math.max(days, 7), Date.parse(today)), [days, today]);
  const plotted = useMemo(() => plansByDay(plans.data?.items ?? [], shown), [plans.data, shown]);
  return (
    <>
      <Panel title="Plans by day">
        {plans.isPending ? <Loading what="the days" lines={3} /> : <Plot title="Plans by day" plotted={plotted} />}
        {plans.data?.more ? <p className="quiet">Of the newest {count(plans.data.items.length, "plan")}.</p> : null}
      </Panel>
      <div className="stat-grid">
        <Counted title="Runs by day" counted={counted} shown={shown} names={{ runs: "begun", ended: "ended", failures: "failed" }} />
        <Counted title="Calls and decisions by day" counted={counted} shown={shown} names={{ calls: "calls", failedCalls: "failed", approvals: "decisions" }} />
        <Counted title="Milliseconds of a run by day" counted={counted} shown={shown} names={{ runP50Ms: "half of them", runP95Ms: "95 %" }} isSum={false} />
        {counted.some((day) => day.outputTokens > 0) ? <Counted title="Tokens of models by day" counted={counted} shown={shown} names={{ inputTokens: "read", outputTokens: "written" }} /> : null}
      </div>
    </>
  );
}

type CountedProps = { title: string; counted: DayLine[]; shown: string[]; names: Partial<Record<keyof DayLine & string, string>>; isSum?: boolean };

function Counted({ title, counted, shown, names, isSum = true }: CountedProps): ReactNode {
  return (
    <Panel title={title}>
      <Plot title={title} plotted={countedByDay(counted, names, shown)} isSum={isSum} />
    </Panel>
  );
}

function Figures({ stats }: { stats: Stats }): ReactNode {
  const { approvals, prediction } = stats;
  return (
    <div className="stat-grid">
      <Panel title="Plans">
        <Bars counts={stats.plans} />
      </Panel>
      <Panel title="Runs">
        <Bars counts={stats.runs} />
      </Panel>
      <Panel title="Decisions">
        <Facts
          facts={[
            ["by people", approvals.approvals],
            ["by policy", approvals.byPolicy],
            ["of steps", `${approvals.stepApprovals} yes, ${approvals.stepDenials} no`],
            ["rejections", approvals.rejections],
            ["changes requested", approvals.changeRequests],
            ["comments", approvals.comments],
            ["expired", approvals.expired],
            ["first yes after", approvals.timeToApprovalP50Ms == null ? "–" : `${duration(approvals.timeToApprovalP50Ms)} (half), ${duration(approvals.timeToApprovalP95Ms ?? 0)} (95 %)`],
          ]}
        />
      </Panel>
      <Panel title="Predicted and real">
        {prediction.runs === 0 ? (
          <p className="quiet">No run with a prediction has ended yet.</p>
        ) : (
          <Facts
            facts={[
              ["runs", prediction.runs],
              ["predicted", duration(prediction.meanPredictedMs)],
              ["real", duration(prediction.meanActualMs)],
              ["off by", duration(prediction.meanOffMs)],
            ]}
          />
        )}
      </Panel>
      <Panel title="Tools" wide>
        <Tools tools={stats.tools} />
      </Panel>
      {stats.toolGaps.length > 0 ? (
        <Panel title="Asked for, and offered by no server">
          <Facts facts={stats.toolGaps.map((gap) => [gap.tool, count(gap.plans, "plan")])} />
        </Panel>
      ) : null}
      {stats.models.length > 0 ? (
        <Panel title={`Models, ${stats.modelCostUsd.toFixed(2)} $`}>
          <Facts facts={stats.models.map((model) => [model.model, `${count(model.answers, "answer")}, ${count(model.inputTokens + model.outputTokens, "token")}, ${model.costUsd.toFixed(3)} $`])} />
        </Panel>
      ) : null}
    </div>
  );
}

function Panel({ title, children, wide = false }: { title: string; children: ReactNode; wide?: boolean }): ReactNode {
  return (
    <section className={wide ? "panel wide" : "panel"} aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function Bars({ counts }: { counts: Record<string, number> }): ReactNode {
  const rows = Object.entries(counts).filter(([, n]) => n > 0);
  const most = Math.max(1, ...rows.map(([, n]) => n));
  if (rows.length === 0) return <p className="quiet">None yet.</p>;
  return (
    <ul className="bars">
      {rows.map(([name, n]) => (
        <li key={name}>
          <State state={name} />
          <span className="bar-track" aria-hidden="true">
            <span className={`bar ${stateWord(name).tone}`} style={{ width: `${(n / most) * 100}%` }} />
          </span>
          <b>{n}</b>
        </li>
      ))}
    </ul>
  );
}

function Facts({ facts }: { facts: [string, string | number][] }): ReactNode {
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>
            <Text text={name} />
          </dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Tools({ tools }: { tools: Stats["tools"] }): ReactNode {
  if (tools.length === 0) return <p className="quiet">No tool was called yet.</p>;
  const slowest = Math.max(1, ...tools.map((tool) => tool.p95Ms));
  return (
    <div className="table-box" tabIndex={0} role="region" aria-label="Tools and how long they took">
      <table>
        <thead>
          <tr>
            <th>tool</th>
            <th>calls</th>
            <th>failed</th>
            <th>half within</th>
            <th>95 % within</th>
            <th aria-label="95 % as a bar" />
          </tr>
        </thead>
        <tbody>
          {tools.map((tool) => (
            <tr key={tool.tool}>
              <td>
                <code>
                  <Text text={tool.tool} />
                </code>
              </td>
              <td>{tool.calls}</td>
              <td className={tool.failures > 0 ? "bad" : ""}>{tool.failures > 0 ? `${tool.failures} (${Math.round(tool.failureRate * 100)} %)` : "0"}</td>
              <td>{duration(tool.p50Ms)}</td>
              <td>{duration(tool.p95Ms)}</td>
              <td className="bar-cell">
                <span className="bar-track" aria-hidden="true">
                  <span className="bar active" style={{ width: `${(tool.p95Ms / slowest) * 100}%` }} />
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
