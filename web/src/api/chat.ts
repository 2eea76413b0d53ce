// The answer of a model, as it comes.
import { SseParser } from "../model/sse";
import { BASE } from "./base";
import { Refusal, unreachable } from "./client";
import { endSession, proofHeader } from "./session";
import type { ProblemBody } from "./types";

export type ChatMessage = { role: "user" | "assistant"; content: string };
export type ChatAnswer = { response: string; model: string; truncated?: boolean };

type Told = { onText: (piece: string) => void; signal: AbortSignal };

/** Asks the model of the service. What it says is told piece by piece, and at last as a whole. */
export async function ask(messages: ChatMessage[], { onText, signal }: Told): Promise<ChatAnswer> {
  let response: Response;
  try {
    response = await fetch(`${BASE}/chat`, {
      method: "POST",
      headers: { accept: "text/event-stream", "content-type": "application/json", ...proofHeader() },
      body: JSON.stringify({ messages, stream: true }),
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
      signal,
    });
  } catch (error) {
    if (signal.aborted) throw error;
    throw unreachable();
  }
  if (response.status === 401) endSession();
  if (!response.ok || response.body === null) throw new Refusal(await problemOf(response));
  const parser = new SseParser();
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw unreachable();
    for (const { event, data } of parser.push(decoder.decode(value, { stream: true }))) {
      if (event === "chat.delta") onText((JSON.parse(data) as { text: string }).text);
      if (event === "chat.done") return JSON.parse(data) as ChatAnswer;
      if (event === "chat.error") throw new Refusal(JSON.parse(data) as ProblemBody);
    }
  }
}

async function problemOf(response: Response): Promise<ProblemBody> {
  const fallback = { type: "about:blank", title: response.statusText, status: response.status, detail: `the service answered ${response.status} ${response.statusText}` };
  return { ...fallback, ...((await response.json().catch(() => ({}))) as Partial<ProblemBody>) };
}
