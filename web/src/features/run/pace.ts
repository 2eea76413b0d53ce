// How often a run is read and shown anew while a lot happens.
import { useCallback, useEffect, useRef, useState } from "react";

/** The shortest pause between two reads of a run. */
const SHORTEST_PAUSE_MS = 600;
/** A run that takes long to be read is read less often: the page is for the reader first. */
const PAUSE_PER_READ = 4;

/** Does something a while after it was asked for, once for all that asked meanwhile. */
export function useThrottled(work: () => Promise<void>): () => void {
  const latest = useRef(work);
  latest.current = work;
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const again = useRef(false);
  const pause = useRef(SHORTEST_PAUSE_MS);
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current);
      timer.current = null;
    },
    [],
  );
  return useCallback(() => {
    const wait = () => {
      timer.current = setTimeout(() => {
        again.current = false;
        const began = performance.now();
        void latest.current().finally(() => {
          pause.current = Math.max(SHORTEST_PAUSE_MS, PAUSE_PER_READ * (performance.now() - began));
          if (timer.current === null) return;
          timer.current = null;
          if (again.current) wait();
        });
      }, pause.current);
    };
    if (timer.current !== null) again.current = true;
    else wait();
  }, []);
}

/** A choice that the page makes for the reader does not change faster than can be read. */
export function useSettled<Value>(value: Value, ms: number): Value {
  const [settled, setSettled] = useState(value);
  const changedAt = useRef(0);
  useEffect(() => {
    if (value === settled) return;
    const wait = Math.max(0, changedAt.current + ms - Date.now());
    const timer = setTimeout(() => {
      changedAt.current = Date.now();
      setSettled(value);
    }, wait);
    return () => clearTimeout(timer);
  }, [value, settled, ms]);
  return settled;
}
