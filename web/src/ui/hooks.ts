import { useCallback, useEffect, useState } from "react";

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
