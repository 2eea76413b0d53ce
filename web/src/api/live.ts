// What happens elsewhere, as it happens. A tab in the background holds no stream open.
import { useEffect, useRef, useState } from "react";
import { follow, type StreamState } from "./stream";
import { planPath } from "./client";
import { queryClient } from "./queries";
import type { PlanEvent } from "./types";

/** Events that come close together are handed over together. */
const BATCH_MS = 100;

type Options = { path: string; fromStart: boolean; onEvents: (events: PlanEvent[]) => void; onReset?: () => void };

function useStream({ path, fromStart, onEvents, onReset }: Options): StreamState {
  const [state, setState] = useState<StreamState>("connecting");
  const handlers = useRef({ onEvents, onReset });
  handlers.current = { onEvents, onReset };
  useEffect(() => {
    let batch: PlanEvent[] = [];
    let timer: ReturnType<typeof setTimeout> | null = null;
    let last: string | undefined = fromStart ? "0" : undefined;
    let close: (() => void) | null = null;
    const flush = () => {
      timer = null;
      const events = batch;
      batch = [];
      if (events.length > 0) handlers.current.onEvents(events);
    };
    const open = () => {
      close = follow(
        path,
        {
          onState: setState,
          onEvent: ({ id, event, data }) => {
            if (id !== null) last = id;
            if (event === "reset") {
              handlers.current.onReset?.();
              return;
            }
            try {
              batch.push(JSON.parse(data) as PlanEvent);
            } catch {
              return;
            }
            timer ??= setTimeout(flush, BATCH_MS);
          },
        },
        last,
      );
    };
    const look = () => {
      if (document.visibilityState === "visible") {
        if (close === null) open();
      } else {
        close?.();
        close = null;
      }
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      document.removeEventListener("visibilitychange", look);
      close?.();
      if (timer !== null) clearTimeout(timer);
    };
  }, [path, fromStart]);
  return state;
}

/** Follows one plan, from its first event on. */
export function usePlanEvents(plan: string, onEvents: (events: PlanEvent[]) => void, onReset?: () => void): StreamState {
  return useStream({ path: planPath(plan, "/events?follow=true"), fromStart: true, onEvents, ...(onReset ? { onReset } : {}) });
}

/** Follows everything, and reads lists again when something happened. */
export function useAllEvents(): StreamState {
  const due = useRef<ReturnType<typeof setTimeout> | null>(null);
  return useStream({
    path: "/events",
    fromStart: false,
    onEvents: (events) => {
      if (events.every((event) => event.event === "plan.progress")) return;
      due.current ??= setTimeout(() => {
        due.current = null;
        void queryClient.invalidateQueries({ queryKey: ["inbox"] });
        void queryClient.invalidateQueries({ queryKey: ["plans"] });
      }, 300);
    },
  });
}
