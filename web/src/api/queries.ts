// What the pages read, by name, so that an event knows what to read again.
import { QueryClient, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { get, getPages, planPath, Refusal, request } from "./client";
import type { Briefing, DeadNoticeList, Diff, Page, Plan, PlanLine, QueueLine, RunResult, ServiceSettings, Stats, Thread, ToolLine, VersionLine, Waiting, Whoami, WorkerList } from "./types";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      refetchOnWindowFocus: true,
      retry: (count, error) => count < 2 && error instanceof Refusal && (error.status === 0 || error.status >= 500),
      retryDelay: (attempt) => 300 * 2 ** attempt,
    },
  },
});

export function useWhoami(enabled = true): UseQueryResult<Whoami> {
  return useQuery({ queryKey: ["whoami"], queryFn: ({ signal }) => get<Whoami>("/whoami", signal), enabled, staleTime: 60_000 });
}

const MOST_WAITING = 400;

async function readInbox(signal: AbortSignal): Promise<Waiting[]> {
  const items: Waiting[] = [];
  let cursor: string | null = null;
  do {
    const rest: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page: Page<Waiting> = await get<Page<Waiting>>(`/approvals?limit=100${rest}`, signal);
    items.push(...page.items);
    cursor = page.nextCursor ?? null;
  } while (cursor !== null && items.length < MOST_WAITING);
  return items;
}

/** What waits for a person; on request also while the tab is in the background. */
export function useInbox(background = false): UseQueryResult<Waiting[]> {
  return useQuery({ queryKey: ["inbox"], queryFn: ({ signal }) => readInbox(signal), refetchInterval: 30_000, refetchIntervalInBackground: background });
}

export function usePlans(status: string, pages: number): UseQueryResult<{ items: PlanLine[]; more: boolean }> {
  return useQuery({
    queryKey: ["plans", status, pages],
    queryFn: async ({ signal }) => {
      const items: PlanLine[] = [];
      let cursor: string | null = null;
      for (let page = 0; page < pages; page += 1) {
        const asked = new URLSearchParams({ limit: "200" });
        if (status !== "") asked.set("status", status);
        if (cursor !== null) asked.set("cursor", cursor);
        const answer: Page<PlanLine> = await get<Page<PlanLine>>(`/plan?${asked}`, signal);
        items.push(...answer.items);
        cursor = answer.nextCursor ?? null;
        if (cursor === null) break;
      }
      return { items, more: cursor !== null };
    },
    placeholderData: (before) => before,
  });
}

export type LoadedPlan = { plan: Plan; etag: string | null };

export async function readPlan(id: string, signal?: AbortSignal): Promise<LoadedPlan> {
  const answer = await request<Plan>(planPath(id), signal ? { signal } : {});
  return { plan: answer.body, etag: answer.etag };
}

/** How often something is read again while its stream is away. */
const POLL_MS = 3_000;

export function usePlan(id: string, poll = false): UseQueryResult<LoadedPlan> {
  return useQuery({ queryKey: ["plan", id], queryFn: ({ signal }) => readPlan(id, signal), refetchInterval: poll ? POLL_MS : false });
}

export function useBriefing(id: string, digest: string | undefined): UseQueryResult<Briefing> {
  return useQuery({
    queryKey: ["plan", id, "briefing", digest],
    queryFn: ({ signal }) => get<Briefing>(planPath(id, "/briefing"), signal),
    enabled: digest !== undefined,
    placeholderData: (before) => before,
  });
}

export function useVersions(id: string): UseQueryResult<VersionLine[]> {
  return useQuery({ queryKey: ["plan", id, "versions"], queryFn: ({ signal }) => getPages<VersionLine>(planPath(id, "/versions"), 1_000, signal) });
}

export function useDiff(id: string, from: number | null, to: number | null): UseQueryResult<Diff> {
  return useQuery({
    queryKey: ["plan", id, "diff", from, to],
    queryFn: ({ signal }) => get<Diff>(planPath(id, `/diff?from=${from}&to=${to}`), signal),
    enabled: from !== null && to !== null && from !== to,
  });
}

export function useThreads(id: string): UseQueryResult<Thread[]> {
  return useQuery({ queryKey: ["plan", id, "comments"], queryFn: ({ signal }) => getPages<Thread>(planPath(id, "/comments"), 1_000, signal) });
}

/** Reads a run with all its steps, page by page. */
export async function readRun(plan: string, run: string, signal?: AbortSignal): Promise<RunResult> {
  const path = planPath(plan, `/runs/${encodeURIComponent(run)}`);
  const whole = await get<RunResult>(path, signal);
  let cursor = whole.nextCursor ?? null;
  while (cursor !== null && whole.steps.length < 10_000) {
    const page: RunResult = await get<RunResult>(`${path}?cursor=${encodeURIComponent(cursor)}`, signal);
    whole.steps.push(...page.steps);
    cursor = page.nextCursor ?? null;
  }
  return whole;
}

export function useRun(plan: string, run: string, poll: boolean): UseQueryResult<RunResult> {
  return useQuery({ refetchInterval: poll ? POLL_MS : false, queryKey: ["plan", plan, "run", run], queryFn: ({ signal }) => readRun(plan, run, signal), placeholderData: (before) => before });
}

export function useTools(): UseQueryResult<ToolLine[]> {
  return useQuery({ queryKey: ["tools"], queryFn: ({ signal }) => getPages<ToolLine>("/tools", 5_000, signal), staleTime: 60_000 });
}

/** The figures of the last days, or of all time. */
export function useStats(days: number | null): UseQueryResult<Stats> {
  const read = (signal: AbortSignal) => {
    const since = days === null ? "" : `?since=${encodeURIComponent(new Date(Date.now() - days * 86_400_000).toISOString())}`;
    return get<Stats>(`/stats${since}`, signal);
  };
  return useQuery({ queryKey: ["stats", days], queryFn: ({ signal }) => read(signal), staleTime: 30_000, placeholderData: (before) => before });
}

/** How the service is set up, which stays so while it runs. */
export function useSettings(): UseQueryResult<ServiceSettings> {
  return useQuery({ queryKey: ["settings"], queryFn: ({ signal }) => get<ServiceSettings>("/settings", signal), staleTime: Infinity });
}

/** Workers take steps and leave without an event of a plan; the events of plans have them read again at once. */
export function useWorkers(wanted = true): UseQueryResult<WorkerList> {
  const enabled = useSettings().data?.dispatch.workers === true && wanted;
  return useQuery({ queryKey: ["workers"], queryFn: ({ signal }) => get<WorkerList>("/workers", signal), refetchInterval: POLL_MS, enabled });
}

/** The queues of the broker, if there is one. */
export function useQueues(hasBroker: boolean): UseQueryResult<QueueLine[]> {
  const read = async (signal: AbortSignal) => (await get<{ queues: QueueLine[] }>("/queues", signal)).queues;
  return useQuery({ queryKey: ["queues"], queryFn: ({ signal }) => read(signal), refetchInterval: POLL_MS, enabled: hasBroker });
}

/** The oldest notices of a queue that were given up. */
export function useDeadNotices(capability: string, limit: number): UseQueryResult<DeadNoticeList> {
  const path = `/queues/${encodeURIComponent(capability)}/dead?limit=${limit}`;
  return useQuery({ queryKey: ["queues", capability, limit], queryFn: ({ signal }) => get<DeadNoticeList>(path, signal), refetchInterval: POLL_MS });
}

/** Reads again what a change of a plan concerns. */
export function refreshPlan(id: string): void {
  void queryClient.invalidateQueries({ queryKey: ["plan", id] });
  void queryClient.invalidateQueries({ queryKey: ["inbox"] });
  void queryClient.invalidateQueries({ queryKey: ["plans"] });
}
