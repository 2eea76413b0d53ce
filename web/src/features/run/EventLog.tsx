import { memo, type ReactNode } from "react";
import type { PlanEvent } from "../../api/types";
import type { RunLife } from "../../model/run";
import { count } from "../../model/text";
import { Text } from "../../ui/Text";

const SHOWN = 500;

/** What happened, in the words of the journal, the newest first. */
export function EventLog({ life }: { life: RunLife }): ReactNode {
  const newest = life.log.slice(-SHOWN).reverse();
  if (newest.length === 0) return <p className="quiet">Nothing has happened yet.</p>;
  return (
    <ol className="log">
      {newest.map((event) => (
        <LogLine key={event.seq} event={event} />
      ))}
      {life.log.length > SHOWN ? <li className="quiet">{count(life.log.length - SHOWN, "earlier entry is", "earlier entries are")} left out: planwright log shows all.</li> : null}
    </ol>
  );
}

/** An event never changes, so neither does its line. */
const LogLine = memo(function LogLine({ event }: { event: PlanEvent }): ReactNode {
  return (
    <li>
      <time dateTime={event.occurredAt}>{new Date(event.occurredAt).toLocaleTimeString("en-GB")}</time>{" "}
      <span>
        <Text text={event.summary ?? event.event} />
        {event.reason ? (
          <span className="quiet">
            {" "}
            <Text text={event.reason} />
          </span>
        ) : null}
      </span>
    </li>
  );
});
