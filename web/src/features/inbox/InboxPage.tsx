import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { useAllEvents } from "../../api/live";
import { useInbox, usePlans } from "../../api/queries";
import { inboxRow, keepOrder, type InboxRow } from "../../model/inbox";
import { ago, isToday, until } from "../../model/time";
import { useKeys } from "../../ui/keys";
import { useNow } from "../../ui/hooks";
import { LiveMark } from "../../ui/LiveMark";
import { Link, navigate } from "../../ui/router";
import { Empty, Loading, ProblemNote, State } from "../../ui/States";
import { Text } from "../../ui/Text";

/** Everything that waits for a person. */
export function InboxPage(): ReactNode {
  const live = useAllEvents();
  const inbox = useInbox();
  const plans = usePlans("", 1);
  const now = useNow();
  // Nothing moves under the pointer: what comes while the page is open comes after what was there.
  const shown = useRef<string[]>([]);
  const first = useRef<ReadonlySet<string> | null>(null);
  const rows = useMemo(() => {
    const ordered = keepOrder(shown.current, (inbox.data ?? []).map(inboxRow));
    shown.current = ordered.map((row) => row.key);
    if (inbox.data) first.current ??= new Set(shown.current);
    return ordered;
  }, [inbox.data]);
  const [at, setAt] = useState(0);
  const list = useRef<HTMLOListElement>(null);
  const chosen = Math.min(at, Math.max(0, rows.length - 1));
  const move = (to: number) => {
    const next = Math.min(Math.max(0, to), rows.length - 1);
    setAt(next);
    list.current?.querySelectorAll("a")[next]?.focus();
  };
  useKeys([
    { key: "j", words: "next in the inbox", run: () => move(chosen + 1) },
    { key: "k", words: "previous in the inbox", run: () => move(chosen - 1) },
    {
      key: "Enter",
      words: "open",
      run: () => {
        const row = rows[chosen];
        if (row) navigate(row.route);
      },
    },
  ]);
  const running = (plans.data?.items ?? []).filter((plan) => ["executing", "waiting", "paused"].includes(plan.status));
  const done = (plans.data?.items ?? []).filter((plan) => plan.status === "completed" && isToday(plan.updatedAt, now));
  const announced = useAnnouncement(rows.length, inbox.isSuccess);
  return (
    <div className="page narrow">
      <header className="page-head">
        <h1>
          Waiting for you <span className="number">{inbox.isSuccess ? rows.length : ""}</span>
        </h1>
        <p className="figures">
          <span>
            Running <b>{running.length}</b>
          </span>
          <span>
            Done today <b>{done.length}</b>
          </span>
          <LiveMark state={live} />
        </p>
      </header>
      <p className="only-read" role="status">
        {announced}
      </p>
      {inbox.isPending ? <Loading what="what waits for you" /> : null}
      {inbox.error ? <ProblemNote error={inbox.error} onRetry={() => void inbox.refetch()} /> : null}
      {rows.length > 0 ? (
        <ol className="inbox" ref={list}>
          {rows.map((row, index) => (
            <li key={row.key}>
              <Row row={row} now={now} fresh={first.current?.has(row.key) === false} onFocus={() => setAt(index)} />
            </li>
          ))}
        </ol>
      ) : null}
      {inbox.isSuccess && rows.length === 0 ? (
        <Empty title="Nothing waits for you">
          <p>
            An agent proposes through MCP or <code>POST /plan</code>; you can <Link to={{ page: "new" }}>propose a plan</Link> yourself, or run{" "}
            <code>planwright create</code>.
          </p>
        </Empty>
      ) : null}
      {running.length > 0 ? (
        <section aria-labelledby="running">
          <h2 id="running">Under way</h2>
          <ul className="lines">
            {running.slice(0, 10).map((plan) => (
              <li key={plan.id}>
                <Link to={{ page: "review", plan: plan.id }}>
                  <Text text={plan.title || plan.id} />
                </Link>{" "}
                <State state={plan.status} /> <span className="quiet">{ago(plan.updatedAt, now)}</span>
              </li>
            ))}
          </ul>
        </section>
      ) : null}
    </div>
  );
}

function Row({ row, now, fresh, onFocus }: { row: InboxRow; now: number; fresh: boolean; onFocus: () => void }): ReactNode {
  return (
    <div className={`inbox-row ${row.kind}`} onFocus={onFocus}>
      <Link to={row.route}>
        <span className="row-kind">{row.word}</span>
        <span className="row-title">
          <Text text={row.title} />
        </span>
        <span className="row-meta">
          {fresh ? <span className="tag ask">new</span> : null}{" "}
          {row.who ? (
            <>
              <Text text={row.who} /> ·{" "}
            </>
          ) : null}
          {ago(row.since, now)}
          {row.expiresAt ? ` · expires ${until(row.expiresAt, now)}` : ""}
        </span>
        <span className="row-consequence">
          <Text text={row.consequence} />
        </span>
      </Link>
    </div>
  );
}

/** Says when more came in, to those who cannot see the list grow. */
function useAnnouncement(count: number, loaded: boolean): string {
  const before = useRef<number | null>(null);
  const [words, setWords] = useState("");
  useEffect(() => {
    if (!loaded) return;
    if (before.current !== null && count > before.current) setWords(`${count - before.current} more waiting for you`);
    before.current = count;
  }, [count, loaded]);
  return words;
}
