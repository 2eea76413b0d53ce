// Reads `text/event-stream` as it comes, in pieces of any size.

export type SseEvent = { id: string | null; event: string; data: string };

/** Characters of one event; a longer one is not for us. */
const MAX_EVENT = 4_000_000;

export class SseParser {
  private rest = "";

  push(text: string): SseEvent[] {
    this.rest += text;
    const events: SseEvent[] = [];
    let from = 0;
    const ends = /\r?\n\r?\n/g;
    for (let end = ends.exec(this.rest); end !== null; end = ends.exec(this.rest)) {
      const event = readBlock(this.rest.slice(from, end.index));
      if (event !== null) events.push(event);
      from = ends.lastIndex;
    }
    this.rest = this.rest.length - from > MAX_EVENT ? "" : this.rest.slice(from);
    return events;
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
