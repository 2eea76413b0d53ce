// The queues of the broker: what waits, and what was given up, with what an admin can do about it.
import { useState, type ReactNode } from "react";
import { post, request } from "../../api/client";
import { queryClient, useDeadNotices, useQueues } from "../../api/queries";
import type { QueueLine, Whoami } from "../../api/types";
import { may, whyNot } from "../../model/access";
import { count } from "../../model/text";
import { ago } from "../../model/time";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { useAction } from "../../ui/hooks";
import { Loading, ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";
import { RunLink } from "./WorkersPage";

const readAgain = () => queryClient.invalidateQueries({ queryKey: ["queues"] });
const deadPath = (capability: string) => `/queues/${encodeURIComponent(capability)}/dead`;

export function Queues({ hasBroker, who, now }: { hasBroker: boolean; who: Whoami | undefined; now: number }): ReactNode {
  const queues = useQueues(hasBroker);
  const [shown, setShown] = useState<string | null>(null);
  const [purged, setPurged] = useState<QueueLine | null>(null);
  if (hasBroker && queues.isPending) return <Loading what="the queues" lines={2} />;
  return (
    <section className="panel stack" aria-labelledby="queues">
      <h2 id="queues">Queues of the broker</h2>
      {queues.error ? <ProblemNote error={queues.error} onRetry={() => void queues.refetch()} /> : null}
      {hasBroker ? null : <p className="quiet">No broker is configured: workers are told by the store.</p>}
      {queues.data?.length === 0 ? <p className="quiet">No capability is listed whose steps workers carry out.</p> : null}
      {queues.data && queues.data.length > 0 ? (
        <>
          <p className="quiet">A notice only tells a worker where to look: one that is given up, sent again or forgotten runs nothing by itself.</p>
          <div className="table-box" tabIndex={0} role="region" aria-label="Queues by capability">
            <table>
              <thead>
                <tr>
                  <th>capability</th>
                  <th>waiting</th>
                  <th>given up</th>
                  <th>oldest</th>
                  <th>held</th>
                  <th>delivered again</th>
                </tr>
              </thead>
              <tbody>
                {queues.data.map((queue) => (
                  <tr key={queue.capability}>
                    <td>
                      <b>
                        <Text text={queue.capability} />
                      </b>
                    </td>
                    <td>{queue.waiting}</td>
                    <td>
                      <Button
                        tone="quiet"
                        label={`Notices of ${queue.capability} that were given up: ${queue.dead}`}
                        expanded={shown === queue.capability}
                        onClick={() => setShown(shown === queue.capability ? null : queue.capability)}
                      >
                        <span className={queue.dead > 0 ? "bad" : ""}>{queue.dead}</span>
                      </Button>
                    </td>
                    <td>{queue.oldest ? ago(queue.oldest, now) : "–"}</td>
                    <td>{queue.held ?? "–"}</td>
                    <td>{queue.redelivered ?? "–"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      ) : null}
      {queues.data?.map((queue) => (queue.capability === shown ? <Dead key={queue.capability} queue={queue} who={who} now={now} onPurge={() => setPurged(queue)} /> : null))}
      {purged ? <PurgeSheet queue={purged} onClose={() => setPurged(null)} /> : null}
    </section>
  );
}

const FIRST_LISTED = 50;
const MOST_LISTED = 1_000;

/** The notices of a queue that were given up, the oldest first. */
function Dead({ queue, who, now, onPurge }: { queue: QueueLine; who: Whoami | undefined; now: number; onPurge: () => void }): ReactNode {
  const { capability } = queue;
  const [limit, setLimit] = useState(FIRST_LISTED);
  const listed = useDeadNotices(capability, limit);
  const requeue = useAction(async (id: string) => {
    await post(`${deadPath(capability)}/${encodeURIComponent(id)}/requeue`);
    await readAgain();
  });
  const why = whyNot(who, "administer");
  const dead = listed.data?.dead ?? [];
  return (
    <section className="stack" aria-label={`Notices of ${capability} that were given up`}>
      <div className="row">
        <h3 className="grow">
          Given up: <Text text={capability} />
        </h3>
        {may(who, "administer") ? (
          <Button tone="danger" disabled={queue.dead === 0} onClick={onPurge}>
            Forget all …
          </Button>
        ) : null}
      </div>
      {listed.isPending ? <Loading what="the notices" lines={2} /> : null}
      <ProblemNote error={listed.error ?? requeue.error} />
      {listed.isSuccess && dead.length === 0 ? <p className="quiet">None was given up.</p> : null}
      <ul className="lines">
        {dead.map((notice) => (
          <li key={notice.id}>
            <span className="grow">
              {notice.run != null && notice.step != null ? <RunLink run={notice.run} plan={notice.plan} step={notice.step} /> : <span className="bad">cannot be read: it is none of ours</span>}{" "}
              <span className="quiet">
                {notice.deliveries == null ? "" : `delivered ${count(notice.deliveries, "time")}, `}
                {notice.since ? `given up ${ago(notice.since, now)}, ` : ""}
                <code>
                  <Text text={notice.id} />
                </code>
              </span>
            </span>
            {notice.run != null ? (
              <Button busy={requeue.busy} why={why} label={`Send again: notice ${notice.id}`} onClick={() => void requeue.run(notice.id)}>
                Send again
              </Button>
            ) : null}
          </li>
        ))}
      </ul>
      {dead.length >= limit && limit < MOST_LISTED ? <Button onClick={() => setLimit(Math.min(limit * 4, MOST_LISTED))}>Show more</Button> : null}
    </section>
  );
}

function PurgeSheet({ queue, onClose }: { queue: QueueLine; onClose: () => void }): ReactNode {
  const [forgotten, setForgotten] = useState<number | null>(null);
  const purge = useAction(async () => {
    const { body } = await request<{ purged: number }>(deadPath(queue.capability), { method: "DELETE" });
    setForgotten(body.purged);
    await readAgain();
  });
  return (
    <Dialog title={`Forget notices of ${queue.capability}`} onClose={onClose}>
      {forgotten !== null ? (
        <div className="stack">
          <p role="status">{count(forgotten, "notice is", "notices are")} forgotten.</p>
          <div className="row end">
            <Button onClick={onClose}>Close</Button>
          </div>
        </div>
      ) : (
        <div className="stack">
          <p>
            {count(queue.dead, "notice", "notices")} of the capability <b><Text text={queue.capability} /></b> that {queue.dead === 1 ? "was" : "were"} given up cannot be looked at any more.
          </p>
          <p className="quiet">No step is lost: they are in the store, and the owners of their runs send notices again.</p>
          <ProblemNote error={purge.error} />
          <div className="row end">
            <Button tone="quiet" onClick={onClose}>
              Keep them
            </Button>
            <Button tone="danger" busy={purge.busy} onClick={() => void purge.run()}>
              Forget {count(queue.dead, "notice")}
            </Button>
          </div>
        </div>
      )}
    </Dialog>
  );
}
