// Reads `text/event-stream` as it comes, in pieces of any size.

export type SseEvent = { id: string | null; event: string; data: string };

/** Characters of one event; a longer one is not for us. */
const MAX_EVENT = 4_000_000;

export class SseParser {
  private rest = "";

  push(text: string): SseEvent[] {
    this.rest += text;
    if (this.rest.length > MAX_EVENT) this.rest = "";
    const events: SseEvent[] = [];
    for (;;) {
      const end = /\r?\n\r?\n/.exec(this.rest);
      if (end === null) return events;
      const block = this.rest.slice(0, end.index);
      this.rest = this.rest.slice(end.index + end[0].length);
      const event = readBlock(block);
      if (event !== null) events.push(event);
    }
  }
}

function readBlock(block: string): SseEvent | null {
  let id: string | null = null;
  let event = "message";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") id = value;
    else if (field === "event") event = value;
    else if (field === "data") data.push(value);
  }
  return data.length === 0 ? null : { id, event, data: data.join("\n") };
}
