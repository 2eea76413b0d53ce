// One function per kind of request. Every refusal becomes a `Refusal` with the words of the service.
import { BASE, withoutBase } from "./base";
import { endSession, keepProof, proofHeader } from "./session";
import type { Json, ProblemBody } from "./types";

/** A request that the service refused, or that did not reach it (`status` 0). */
export class Refusal extends Error {
  readonly status: number;
  readonly problem: ProblemBody;

  constructor(problem: ProblemBody) {
    super(problem.detail || problem.title);
    this.name = "Refusal";
    this.status = problem.status;
    this.problem = problem;
  }
}

/** A session lasts for 12 hours, and is renewed when half of them are over. */
const RENEW_MS = 6 * 3_600_000;

export type Answer<Body> = { body: Body; etag: string | null; next: string | null };

type Options = { method?: string; body?: unknown; contentType?: string; ifMatch?: string; signal?: AbortSignal };

async function readProblem(response: Response): Promise<ProblemBody> {
  const fallback = {
    type: "about:blank",
    title: response.statusText,
    status: response.status,
    detail: `the service answered ${response.status} ${response.statusText}`,
  };
  try {
    return { ...fallback, ...((await response.json()) as Partial<ProblemBody>), status: response.status };
  } catch {
    return fallback;
  }
}

export function unreachable(): Refusal {
  return new Refusal({
    type: "about:blank",
    title: "no answer",
    status: 0,
    detail: "the service does not answer",
    hint: "is planwright serve still running?",
  });
}

export async function request<Body>(path: string, options: Options = {}): Promise<Answer<Body>> {
  const headers: Record<string, string> = { accept: "application/json", ...proofHeader() };
  const method = options.method ?? "GET";
  if (options.body !== undefined) headers["content-type"] = options.contentType ?? "application/json";
  if (options.ifMatch !== undefined) headers["if-match"] = options.ifMatch;
  // A click is done once, also if its answer is lost and the browser sends it again.
  if (method === "POST") headers["idempotency-key"] = newKey();
  let response: Response;
  try {
    response = await fetch(BASE + path, {
      method,
      headers,
      body: options.body === undefined ? null : JSON.stringify(options.body),
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
      ...(options.signal ? { signal: options.signal } : {}),
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw unreachable();
  }
  if (!response.ok) {
    const problem = await readProblem(response);
    if (response.status === 401 && path !== "/sign-in") endSession();
    throw new Refusal(problem);
  }
  const body = response.status === 204 ? (null as Body) : ((await response.json()) as Body);
  return { body, etag: response.headers.get("etag"), next: nextLink(response.headers.get("link")) };
}

export async function get<Body>(path: string, signal?: AbortSignal): Promise<Body> {
  return (await request<Body>(path, signal ? { signal } : {})).body;
}

export async function post<Body>(path: string, body: { [key: string]: Json | undefined } | undefined = {}): Promise<Body> {
  return (await request<Body>(path, { method: "POST", body })).body;
}

/** Reads bytes as they are. */
export async function readBytes(path: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(BASE + path, { headers: proofHeader(), cache: "no-store", credentials: "same-origin", redirect: "error", signal });
  if (response.status === 401) endSession();
  if (!response.ok) throw new Refusal(await readProblem(response));
  return new Uint8Array(await response.arrayBuffer());
}

/** Signs in with what a person has: a code of a link, or a token. */
export async function signIn(shown: { code: string } | { token: string }): Promise<void> {
  const session = await request<{ proof: string }>("/sign-in", { method: "POST", body: { ...shown, cookie: true } });
  keepProof(session.body.proof);
}

/** Ends the session, here and at the service. One that is over already is no reason to stay. */
export async function signOut(): Promise<void> {
  await request("/session", { method: "DELETE" }).catch(() => undefined);
  keepProof(null);
}

/** Makes the session last, if half of its time is over. Says whether it was. */
export async function renewSession(expiresAt: string): Promise<boolean> {
  const isDue = Date.parse(expiresAt) - Date.now() < RENEW_MS;
  if (isDue) await request("/session/renew", { method: "POST" });
  return isDue;
}

/** Reads the address of the next page from a `Link` header. */
export function nextLink(header: string | null): string | null {
  const found = header?.match(/<([^>]+)>;\s*rel="next"/);
  return found?.[1] === undefined ? null : withoutBase(found[1]);
}

/** Reads a list that has pages, all of it up to a limit. */
export async function getPages<Item>(path: string, limit: number, signal?: AbortSignal): Promise<Item[]> {
  const items: Item[] = [];
  let next: string | null = path;
  while (next !== null && items.length < limit) {
    const answer: Answer<Item[]> = await request<Item[]>(next, signal ? { signal } : {});
    items.push(...answer.body);
    next = answer.next;
  }
  return items;
}

function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function planPath(id: string, rest = ""): string {
  return `/plan/${encodeURIComponent(id)}${rest}`;
}

export function stepPath(plan: string, step: string, action: string): string {
  return planPath(plan, `/steps/${encodeURIComponent(step)}/${action}`);
}
