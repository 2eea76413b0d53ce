import { useCallback, useEffect, useLayoutEffect, useState, type RefObject } from "react";

/** The time, told every so often. */
export function useNow(everyMs = 10_000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

export type Action<Args extends unknown[]> = {
  run: (...args: Args) => Promise<boolean>;
  busy: boolean;
  error: unknown;
  clear: () => void;
};

/** Something that a click does: busy while it works, and what went wrong stays where the click was. */
export function useAction<Args extends unknown[]>(work: (...args: Args) => Promise<unknown>): Action<Args> {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const run = async (...args: Args): Promise<boolean> => {
    setBusy(true);
    setError(null);
    try {
      await work(...args);
      return true;
    } catch (problem) {
      setError(problem);
      return false;
    } finally {
      setBusy(false);
    }
  };
  const clear = useCallback(() => setError(null), []);
  return { run, busy, error, clear };
}

/** How wide an element is, also after it was resized; 0 before it was drawn. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const box = element.current;
    if (box === null) return;
    const measure = () => setWidth(box.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
