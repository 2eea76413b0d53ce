// Long lists that scroll with the window, drawn as far as they are on screen.
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useRef, useState, type ReactNode } from "react";

type Props = {
  count: number;
  keyOf: (index: number) => string;
  draw: (index: number) => ReactNode;
  /** How high a row is likely to be, before it was drawn. */
  estimate: number;
  /** The row to bring to the top, by its key. */
  shown?: { key: string; index: number } | null;
  role?: "list";
};

export function VirtualRows({ count, keyOf, draw, estimate, shown, role }: Props): ReactNode {
  const list = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    if (list.current) setMargin(list.current.getBoundingClientRect().top + window.scrollY);
  }, []);
  const virtual = useWindowVirtualizer({ count, estimateSize: () => estimate, overscan: 4, scrollMargin: margin, getItemKey: keyOf });
  const scrolledTo = useRef<string | null>(null);
  useLayoutEffect(() => {
    if (!shown || shown.index < 0 || scrolledTo.current === shown.key) return;
    scrolledTo.current = shown.key;
    virtual.scrollToIndex(shown.index, { align: "start" });
  }, [shown, virtual]);
  return (
    <div ref={list} className="virtual" style={{ height: virtual.getTotalSize() }} role={role}>
      {virtual.getVirtualItems().map((item) => (
        <div
          key={item.key}
          ref={virtual.measureElement}
          data-index={item.index}
          className="virtual-row"
          role={role === "list" ? "presentation" : undefined}
          style={{ transform: `translateY(${item.start - margin}px)` }}
        >
          {draw(item.index)}
        </div>
      ))}
    </div>
  );
}
