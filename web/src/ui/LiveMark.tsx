import type { ReactNode } from "react";
import type { StreamState } from "../api/stream";

const WORDS: Record<StreamState, string> = { live: "live", connecting: "connecting", reconnecting: "connection lost, trying again", closed: "not live" };

/** Says whether what is shown is kept up to date. */
export function LiveMark({ state }: { state: StreamState }): ReactNode {
  const words = WORDS[state];
  return (
    <span className={`live ${state}`} role="status">
      <span aria-hidden="true">{state === "live" ? "●" : "○"}</span> {words}
    </span>
  );
}
