// A value that is read better by its parts: each opens where it is.
import { useState, type ReactNode } from "react";
import type { Json } from "../api/types";
import { count } from "../model/text";
import { Text } from "./Text";

/** Parts of one value that are drawn at once. */
const SHOWN = 200;
/** Parts that are this deep are open from the beginning. */
const OPEN_TO = 1;

export function JsonTree({ value, name, depth = 0 }: { value: Json; name?: string; depth?: number }): ReactNode {
  const [open, setOpen] = useState(depth <= OPEN_TO);
  const [shown, setShown] = useState(SHOWN);
  const label = name === undefined ? null : (
    <b>
      <Text text={name} />:{" "}
    </b>
  );
  if (typeof value !== "object" || value === null) {
    return (
      <div className="leaf">
        {label}
        <Text text={JSON.stringify(value)} />
      </div>
    );
  }
  const parts: [string, Json][] = Array.isArray(value) ? value.map((part, index) => [String(index), part]) : Object.entries(value);
  return (
    <details className="tree" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {label}
        <span className="quiet">{Array.isArray(value) ? `[${count(parts.length, "element")}]` : `{${count(parts.length, "field")}}`}</span>
      </summary>
      {open ? parts.slice(0, shown).map(([key, part]) => <JsonTree key={key} name={key} value={part} depth={depth + 1} />) : null}
      {open && parts.length > shown ? (
        <button type="button" className="button quiet" onClick={() => setShown(shown + SHOWN)}>
          Show more of {parts.length}
        </button>
      ) : null}
    </details>
  );
}
