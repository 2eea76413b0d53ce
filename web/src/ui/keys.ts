// Keys of the page that is open. They do nothing while the reviewer types, or while a sheet is open.
import { useEffect, useRef } from "react";

export type Key = { key: string; words: string; run: () => void; enabled?: boolean };

let active: Key[][] = [];

/** The keys that work now, for the list behind `?`. */
export function activeKeys(): Key[] {
  return active.flat();
}

export function useKeys(keys: Key[]): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const mine: Key[] = latest.current;
    active.push(mine);
    const listen = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]") !== null) return;
      const found = latest.current.find((key) => key.key === event.key && key.enabled !== false);
      if (found === undefined) return;
      event.preventDefault();
      found.run();
    };
    window.addEventListener("keydown", listen);
    return () => {
      active = active.filter((other) => other !== mine);
      window.removeEventListener("keydown", listen);
    };
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}
