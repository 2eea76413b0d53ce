// Notifications of the browser: only after the person asked for them here, and allowed them there.
import { useEffect, useRef, useSyncExternalStore } from "react";
import type { InboxRow } from "../model/inbox";
import { noticesOf } from "../model/notices";
import { navigate } from "./router";

const KEY = "planwright.notices";

export type NoticeState = "on" | "off" | "refused" | "impossible";

let listeners: (() => void)[] = [];

export function noticeState(): NoticeState {
  if (!("Notification" in window) || !window.isSecureContext) return "impossible";
  if (Notification.permission === "denied") return "refused";
  return Notification.permission === "granted" && kept() === "on" ? "on" : "off";
}

function kept(): string | null {
  try {
    return window.localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(value: "on" | "off"): void {
  try {
    window.localStorage.setItem(KEY, value);
  } catch {
    // Without a place to keep it, it stays off.
  }
  for (const listener of listeners) listener();
}

/** Asks the browser, which asks the person. */
export async function turnNoticesOn(): Promise<void> {
  const answer = await Notification.requestPermission();
  keep(answer === "granted" ? "on" : "off");
}

export function turnNoticesOff(): void {
  keep("off");
}

export function useNoticeState(): NoticeState {
  return useSyncExternalStore((listener) => {
    listeners.push(listener);
    return () => {
      listeners = listeners.filter((other) => other !== listener);
    };
  }, noticeState);
}

/** Tells what came into the inbox, unless the person is looking at the page. */
export function useNotices(rows: InboxRow[] | undefined): void {
  const known = useRef<Set<string> | null>(null);
  useEffect(() => {
    if (rows === undefined) return;
    const notices = noticesOf(known.current, rows);
    known.current = new Set(rows.map((row) => row.key));
    if (noticeState() !== "on" || document.hasFocus()) return;
    for (const { title, body, tag } of notices) {
      const notice = new Notification(title, { body, tag });
      notice.onclick = () => {
        window.focus();
        const row = rows.find((other) => other.key === tag);
        navigate(row?.route ?? { page: "inbox" });
        notice.close();
      };
    }
  }, [rows]);
}
