import type { ReactNode } from "react";
import type { StreamState } from "../api/stream";

/** Says whether what is shown is kept up to date. */
export function LiveMark({ state }: { state: StreamState }): ReactNode {
  const words = state === "live" ? "live" : state === "connecting" ? "connecting" : "connection lost, trying again";
  return (
    <span className={`live ${state}`} role="status">
      <span aria-hidden="true">{state === "live" ? "●" : "○"}</span> {words}
    </span>
  );
}
