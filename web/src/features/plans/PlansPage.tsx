import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef, useState, type ReactNode } from "react";
import { BASE } from "../../api/base";
import { useAllEvents } from "../../api/live";
import { usePlans, useWhoami } from "../../api/queries";
import type { PlanLine } from "../../api/types";
import { may } from "../../model/access";
import { searchPlans, STATUSES } from "../../model/plans";
import { stateWord } from "../../model/run";
import { count } from "../../model/text";
import { ago } from "../../model/time";
import { Button } from "../../ui/Button";
import { useNow } from "../../ui/hooks";
import { useKeys } from "../../ui/keys";
import { LiveMark } from "../../ui/LiveMark";
import { Link, navigate } from "../../ui/router";
import { Empty, Loading, ProblemNote, State } from "../../ui/States";
import { Text } from "../../ui/Text";

export default function PlansPage(): ReactNode {
  const live = useAllEvents();
  const who = useWhoami().data;
  const now = useNow();
  const [status, setStatus] = useState("");
  const [query, setQuery] = useState("");
  const [pages, setPages] = useState(1);
  const plans = usePlans(status, pages);
  const search = useRef<HTMLInputElement>(null);
  useKeys([{ key: "/", words: "search", run: () => search.current?.focus() }]);
  const shown = searchPlans(plans.data?.items ?? [], query);
  return (
    <div className="page narrow">
      <header className="page-head">
        <h1>Plans</h1>
        <p className="figures">
          <LiveMark state={live} />
          {may(who, "propose") ? (
            <Link className="button" to={{ page: "new" }}>
              Propose a plan
            </Link>
          ) : null}
        </p>
      </header>
      <div className="row filters">
        <input ref={search} type="search" aria-label="Search" placeholder="Search titles and names" value={query} onChange={(event) => setQuery(event.target.value)} />
        <select aria-label="Status" value={status} onChange={(event) => setStatus(event.target.value)}>
          <option value="">every status</option>
          {STATUSES.map((name) => (
            <option key={name} value={name}>
              {statusWords(name)}
            </option>
          ))}
        </select>
      </div>
      {plans.isPending ? <Loading what="the plans" /> : null}
      {plans.error ? <ProblemNote error={plans.error} onRetry={() => void plans.refetch()} /> : null}
      {plans.isSuccess && shown.length === 0 ? (
        <Empty title={query || status ? "No plan is like that" : "There are no plans yet"}>
          {query || status ? (
            <Button
              onClick={() => {
                setQuery("");
                setStatus("");
              }}
            >
              Show all
            </Button>
          ) : null}
        </Empty>
      ) : null}
      {shown.length > 0 ? <Rows plans={shown} now={now} /> : null}
      {plans.data?.more ? (
        <div>
          <Button busy={plans.isFetching} onClick={() => setPages(pages + 1)}>
            Load more
          </Button>
        </div>
      ) : null}
      {plans.isSuccess ? <p className="quiet">{count(shown.length, "plan")}</p> : null}
    </div>
  );
}

/** The name of a status, and what it means where that is not the same. */
function statusWords(status: string): string {
  const name = status.replaceAll("_", " ");
  const { word } = stateWord(status);
  return word === name ? name : `${name}: ${word}`;
}

const ROW_PX = 56;

function Rows({ plans, now }: { plans: PlanLine[]; now: number }): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: plans.length, getScrollElement: () => box.current, estimateSize: () => ROW_PX, overscan: 6, getItemKey: (index) => plans[index]?.id ?? index });
  return (
    <div ref={box} className="plan-box" tabIndex={0} aria-label="Plans" role="list">
      <div className="virtual" style={{ height: virtual.getTotalSize() }} role="presentation">
        {virtual.getVirtualItems().map((item) => {
          const plan = plans[item.index];
          if (plan === undefined) return null;
          return (
            <div key={item.key} role="listitem" ref={virtual.measureElement} data-index={item.index} className="virtual-row tight" style={{ transform: `translateY(${item.start}px)` }}>
              <a
                className="plan-row"
                href={`${BASE}/ui/plans/${encodeURIComponent(plan.id)}`}
                onClick={(event) => {
                  if (event.metaKey || event.ctrlKey || event.shiftKey) return;
                  event.preventDefault();
                  navigate({ page: "review", plan: plan.id });
                }}
              >
                <span className="plan-name">
                  <b>
                    <Text text={plan.title || plan.id} />
                  </b>
                  <small className="quiet">
                    <Text text={plan.id} /> · version {plan.version} · {count(plan.steps, "step")}
                  </small>
                </span>
                <State state={plan.status} />
                <span className="quiet plan-when">{ago(plan.updatedAt, now)}</span>
              </a>
            </div>
          );
        })}
      </div>
    </div>
  );
}
