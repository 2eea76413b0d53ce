// What happens elsewhere, as it happens. A tab in the background holds no stream open.
import { useEffect, useRef, useState } from "react";
import { follow, type StreamState } from "./stream";
import { planPath } from "./client";
import { queryClient, refreshPlan } from "./queries";
import { isPassing } from "../model/run";
import type { PlanEvent } from "./types";

/** Events that come close together are handed over together, before a frame is drawn. */
const BATCH_MS = 100;
/** A plan that is reviewed is read again at most this often. */
const REVIEW_MS = 150;

type Options = { path: string; fromStart: boolean; onEvents: (events: PlanEvent[]) => void; onReset?: () => void };

function useStream({ path, fromStart, onEvents, onReset }: Options): StreamState {
  const [state, setState] = useState<StreamState>("connecting");
  const handlers = useRef({ onEvents, onReset });
  handlers.current = { onEvents, onReset };
  useEffect(() => {
    let batch: PlanEvent[] = [];
    let timer: ReturnType<typeof setTimeout> | null = null;
    let frame: number | null = null;
    let last: string | undefined = fromStart ? "0" : undefined;
    let close: (() => void) | null = null;
    const flush = () => {
      timer = null;
      frame = null;
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
            timer ??= setTimeout(() => (frame = requestAnimationFrame(flush)), BATCH_MS);
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
      if (frame !== null) cancelAnimationFrame(frame);
    };
  }, [path, fromStart]);
  return state;
}

/** Follows one plan, from its first event on. */
export function usePlanEvents(plan: string, onEvents: (events: PlanEvent[]) => void, onReset?: () => void): StreamState {
  return useStream({ path: planPath(plan, "/events?follow=true"), fromStart: true, onEvents, ...(onReset ? { onReset } : {}) });
}

/** Follows a plan that is reviewed, and reads again what its events concern. */
export function useReviewedPlan(plan: string): StreamState {
  const due = useRef<{ timer: ReturnType<typeof setTimeout>; onlyComments: boolean } | null>(null);
  const refresh = (onlyComments: boolean) => {
    if (due.current !== null) {
      due.current.onlyComments &&= onlyComments;
      return;
    }
    const timer = setTimeout(() => {
      const comments = due.current?.onlyComments ?? false;
      due.current = null;
      if (comments) void queryClient.invalidateQueries({ queryKey: ["plan", plan, "comments"] });
      else refreshPlan(plan);
    }, REVIEW_MS);
    due.current = { timer, onlyComments };
  };
  useEffect(
    () => () => {
      if (due.current !== null) clearTimeout(due.current.timer);
      due.current = null;
    },
    [],
  );
  return usePlanEvents(
    plan,
    (events) => {
      // Steps of a run are watched at the run; a review is about what the plan says.
      const news = events.filter((event) => event.event !== "plan.step" && !isPassing(event));
      if (news.length > 0) refresh(news.every((event) => event.event.startsWith("plan.comment")));
    },
    () => refresh(false),
  );
}

/** Follows everything, and reads lists again when something happened. */
export function useAllEvents(): StreamState {
  const due = useRef<ReturnType<typeof setTimeout> | null>(null);
  return useStream({
    path: "/events",
    fromStart: false,
    onEvents: (events) => {
      if (events.every(isPassing)) return;
      due.current ??= setTimeout(() => {
        due.current = null;
        void queryClient.invalidateQueries({ queryKey: ["inbox"] });
        void queryClient.invalidateQueries({ queryKey: ["plans"] });
        void queryClient.invalidateQueries({ queryKey: ["workers"] });
      }, 300);
    },
  });
}
