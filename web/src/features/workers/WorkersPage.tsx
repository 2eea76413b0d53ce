// Who carries out runs and steps, what waits for them, and the queues that tell them where to look.
import type { ReactNode } from "react";
import { useAllEvents } from "../../api/live";
import { useSettings, useWhoami, useWorkers } from "../../api/queries";
import type { WorkerLine, WorkerList } from "../../api/types";
import { count } from "../../model/text";
import { ago, duration } from "../../model/time";
import { takersOf, workerWord } from "../../model/workers";
import { useNow } from "../../ui/hooks";
import { LiveMark } from "../../ui/LiveMark";
import { Link } from "../../ui/router";
import { Empty, Loading, ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";
import { Queues } from "./Queues";

export default function WorkersPage(): ReactNode {
  const live = useAllEvents();
  const workers = useWorkers();
  const who = useWhoami().data;
  const now = useNow(1_000);
  const list = workers.data;
  const settings = useSettings();
  const dispatch = settings.data?.dispatch;
  const failed = [settings, workers].find((query) => query.error);
  const hasNone = dispatch?.workers === false;
  return (
    <div className="page narrow">
      <header className="page-head">
        <h1>
          Workers <span className="number">{list?.workers.length}</span>
        </h1>
        <p className="figures">
          <LiveMark state={live} />
        </p>
      </header>
      {workers.isPending && !hasNone && !failed ? <Loading what="the workers" /> : null}
      {hasNone ? (
        <Empty title="This service carries out everything itself">
          <p>Workers share a store in a database: docs/scale.md says how.</p>
        </Empty>
      ) : failed ? (
        <ProblemNote error={failed.error} onRetry={() => void failed.refetch()} />
      ) : null}
      {list ? (
        <>
          <Waiting list={list} />
          {list.workers.length === 0 ? (
            <Empty title="There are no workers">
              <p>
                <code>planwright worker --capability NAME</code> starts one.
              </p>
            </Empty>
          ) : (
            list.workers.map((worker) => <Worker key={worker.id} worker={worker} plans={list.plans} now={now} />)
          )}
        </>
      ) : null}
      {dispatch?.workers === true ? <Queues hasBroker={dispatch.broker} who={who} now={now} /> : null}
    </div>
  );
}

/** The steps that no worker has taken, by capability. */
function Waiting({ list }: { list: WorkerList }): ReactNode {
  if (list.waiting.length === 0) return null;
  return (
    <section className="panel stack" aria-labelledby="waiting-steps">
      <h2 id="waiting-steps">Steps that no worker has taken</h2>
      <ul className="lines">
        {list.waiting.map(({ capability, steps, oldestSeconds }) => {
          const takers = takersOf(list, capability).length;
          return (
            <li key={capability}>
              <b>
                <Text text={capability} />
              </b>{" "}
              {count(steps, "step")}, the first for {duration(oldestSeconds * 1_000)}
              {takers === 0 ? <span className="bad">no worker has this capability</span> : <span className="quiet">{count(takers, "worker")} can take steps with it</span>}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Worker({ worker, plans, now }: { worker: WorkerLine; plans: WorkerList["plans"]; now: number }): ReactNode {
  const { glyph, word, tone } = workerWord(worker);
  return (
    <section className="panel stack" aria-label={`Worker ${worker.id}`}>
      <header className="card-head">
        <h2>
          <Text text={worker.host} /> <span className="number">{worker.pid}</span>
        </h2>
        <span className={`state ${tone}`}>
          <span aria-hidden="true">{glyph}</span> {word}
        </span>
        {worker.state === "draining" ? <span className="quiet">ends what it began, and takes nothing more</span> : null}
        {worker.state === "gone" ? <span className="quiet">what it had taken is being looked after</span> : null}
      </header>
      <dl className="facts">
        <div>
          <dt>takes</dt>
          <dd>
            {worker.capabilities.length === 0
              ? "runs"
              : worker.capabilities.map((capability) => (
                  <span key={capability}>
                    <span className="tag">
                      <Text text={capability} />
                    </span>{" "}
                  </span>
                ))}
          </dd>
        </div>
        <div>
          <dt>does now</dt>
          <dd>
            <Work worker={worker} plans={plans} />
          </dd>
        </div>
        <div>
          <dt>last seen</dt>
          <dd>{ago(worker.seenAt, now)}</dd>
        </div>
        <div>
          <dt>started</dt>
          <dd>{ago(worker.startedAt, now)}</dd>
        </div>
        <div>
          <dt>name</dt>
          <dd>
            <code>
              <Text text={worker.id} />
            </code>{" "}
            <span className="quiet">
              version <Text text={worker.version} />
            </span>
          </dd>
        </div>
      </dl>
      {worker.tools.length > 0 ? (
        <details>
          <summary>{count(worker.tools.length, "tool")}</summary>
          <p>
            {worker.tools.map((tool) => (
              <span key={tool}>
                <code>
                  <Text text={tool} />
                </code>{" "}
              </span>
            ))}
          </p>
        </details>
      ) : null}
    </section>
  );
}

/** What it carries out: steps of runs that others own, and runs of its own. */
function Work({ worker, plans }: { worker: WorkerLine; plans: WorkerList["plans"] }): ReactNode {
  if (worker.steps.length === 0 && worker.runs.length === 0) return "nothing";
  return (
    <ul className="consequences">
      {worker.steps.map(({ run, step, attempt }) => (
        <li key={`${run}/${step}/${attempt}`}>
          step <RunLink run={run} plan={plans[run]} step={step} />
          {attempt > 1 ? `, attempt ${attempt}` : ""}
        </li>
      ))}
      {worker.runs.map((run) => (
        <li key={run}>
          run <RunLink run={run} plan={plans[run]} />
        </li>
      ))}
    </ul>
  );
}

/** A run by its plan, or by its id where the plan is not known. */
export function RunLink({ run, plan, step }: { run: string; plan: string | null | undefined; step?: string }): ReactNode {
  const words = (
    <>
      {step === undefined ? null : (
        <>
          <b>
            <Text text={step} />
          </b>{" "}
          of{" "}
        </>
      )}
      <Text text={plan ?? run} />
    </>
  );
  return plan == null ? words : <Link to={{ page: "run", plan, run, ...(step === undefined ? {} : { step }) }}>{words}</Link>;
}
