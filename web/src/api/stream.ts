// Event streams over `fetch`: unlike `EventSource`, it says why a stream was refused, and notices one that has gone silent.
import { BASE } from "./base";
import { endSession, proofHeader } from "./session";
import { SseParser, type SseEvent } from "../model/sse";

export type StreamState = "connecting" | "live" | "reconnecting" | "closed";

type Listener = {
  onEvent: (event: SseEvent) => void;
  onState: (state: StreamState) => void;
};

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** The service says something at least every 15 seconds; a stream that is silent for longer is dead. */
const SILENCE_MS = 40_000;

/** Follows a stream until it is closed. It comes back by itself, behind the last event it saw. */
export function follow(path: string, listener: Listener, after?: string): () => void {
  const closed = new AbortController();
  void run(path, listener, closed.signal, after ?? null);
  return () => closed.abort();
}

async function run(path: string, listener: Listener, closed: AbortSignal, first: string | null): Promise<void> {
  let last = first;
  let pause = FIRST_PAUSE_MS;
  listener.onState("connecting");
  while (!closed.aborted) {
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    closed.addEventListener("abort", stop);
    try {
      const headers: Record<string, string> = { accept: "text/event-stream", ...proofHeader() };
      if (last !== null) headers["last-event-id"] = last;
      const response = await fetch(BASE + path, { headers, signal: attempt.signal, cache: "no-store", credentials: "same-origin" });
      if (response.status === 401) {
        endSession();
        return;
      }
      if (response.status === 204 || response.status === 403 || response.status === 404) {
        listener.onState("closed");
        return;
      }
      if (response.ok && response.body) {
        listener.onState("live");
        pause = FIRST_PAUSE_MS;
        const parser = new SseParser();
        for await (const text of chunks(response.body, attempt)) {
          for (const event of parser.push(text)) {
            if (event.id !== null) last = event.id;
            listener.onEvent(event);
          }
        }
      }
    } catch {
      // Cut off: it is tried again below.
    } finally {
      closed.removeEventListener("abort", stop);
      attempt.abort();
    }
    if (closed.aborted) return;
    listener.onState("reconnecting");
    await sleep(pause, closed);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

async function* chunks(body: ReadableStream<Uint8Array>, attempt: AbortController): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const silence = setTimeout(() => attempt.abort(), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    yield decoder.decode(value, { stream: true });
  }
}

function sleep(ms: number, closed: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    closed.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
