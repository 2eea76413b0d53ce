// What is told to a person whose eyes are elsewhere.
import type { InboxRow } from "./inbox";
import { visible } from "./text";

export type Notice = { title: string; body: string; tag: string };

/** More than this many at once are told as one. */
const MOST = 3;

/** What came into the inbox since it was last looked at; nothing the first time. */
export function noticesOf(known: ReadonlySet<string> | null, rows: InboxRow[]): Notice[] {
  if (known === null) return [];
  const fresh = rows.filter((row) => !known.has(row.key));
  if (fresh.length > MOST) return [{ title: "Planwright", body: `${fresh.length} more are waiting for you`, tag: "many" }];
  return fresh.map((row) => ({ title: visible(`${row.word}: ${row.title}`), body: visible(row.consequence), tag: row.key }));
}
