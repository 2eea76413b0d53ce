// Times as people say them.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/** How long something took or takes: `0.3 s`, `41 s`, `2 m 05 s`, `3 h`, `2 d`. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 0.95) return `${Math.round(Math.max(0, ms))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < MINUTE) return `${Math.round(seconds)} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} m ${String(Math.floor(seconds % MINUTE)).padStart(2, "0")} s`;
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)} h ${String(Math.floor((seconds % HOUR) / MINUTE)).padStart(2, "0")} m`;
  return `${Math.floor(seconds / DAY)} d`;
}

/** How long ago, in the one unit that counts. */
export function ago(at: string, now: number): string {
  const seconds = Math.floor((now - Date.parse(at)) / 1000);
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 10) return "just now";
  return `${rough(seconds)} ago`;
}

/** How long until, or that it is over. */
export function until(at: string, now: number): string {
  const seconds = Math.floor((Date.parse(at) - now) / 1000);
  if (!Number.isFinite(seconds)) return "";
  return seconds <= 0 ? "over" : `in ${rough(seconds)}`;
}

function rough(seconds: number): string {
  if (seconds < MINUTE) return `${seconds} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)} h`;
  return `${Math.floor(seconds / DAY)} d`;
}

export function isToday(at: string, now: number): boolean {
  return new Date(at).toDateString() === new Date(now).toDateString();
}
