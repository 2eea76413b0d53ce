// The steps as they would be approved: what changes something first and open, what only reads folded.
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useRef, useState, type ReactNode } from "react";
import type { Briefing, Plan, StepBriefing, Thread } from "../../api/types";
import { groupSteps } from "../../model/briefing";
import { contentOf, type Seen } from "../../model/seen";
import { StepCard } from "./StepCard";

type Props = {
  plan: Plan;
  briefing: Briefing;
  threads: Thread[];
  seen: Seen;
  selected: string | null;
  open: boolean;
  onOpen: (open: boolean) => void;
  mayComment: boolean;
  onSeen: (step: StepBriefing) => void;
};

type Row = { kind: "heading"; words: string } | { kind: "fold"; count: number } | { kind: "step"; step: StepBriefing };

/** Lists that are longer than this are drawn as far as they are on screen. */
const VIRTUAL_FROM = 40;

export function BriefingList(props: Props): ReactNode {
  const { briefing, open, onOpen } = props;
  const { changing, others } = groupSteps(briefing);
  const rows: Row[] = [{ kind: "heading", words: changing.length === 0 ? "Nothing is changed" : `Changes something (${changing.length})` }];
  rows.push(...changing.map((step): Row => ({ kind: "step", step })));
  if (others.length > 0) {
    rows.push({ kind: "fold", count: others.length });
    if (open) rows.push(...others.map((step): Row => ({ kind: "step", step })));
  }
  const draw = (row: Row): ReactNode => {
    switch (row.kind) {
      case "heading":
        return <h2 className="group">{row.words}</h2>;
      case "fold":
        return (
          <button type="button" className="fold" aria-expanded={open} onClick={() => onOpen(!open)}>
            <span aria-hidden="true">{open ? "▾" : "▸"}</span> Only reads, or calls nothing ({row.count})
          </button>
        );
      case "step":
        return <Card {...props} step={row.step} />;
    }
  };
  if (rows.length <= VIRTUAL_FROM) {
    return (
      <div className="stack">
        {rows.map((row, index) => (
          <div key={row.kind === "step" ? `${briefing.digest}/${row.step.id}` : index}>{draw(row)}</div>
        ))}
      </div>
    );
  }
  return <VirtualRows rows={rows} draw={draw} selected={props.selected} digest={briefing.digest} />;
}

function Card({ plan, step, threads, seen, selected, mayComment, onSeen }: Props & { step: StepBriefing }): ReactNode {
  const before = seen.get(step.id);
  const same = before === contentOf(step);
  return (
    <StepCard
      plan={plan.id}
      step={step}
      verdict={plan.policy.find((verdict) => verdict.step === step.id)}
      threads={threads.filter((thread) => thread.step === step.id)}
      seen={same}
      changed={before !== undefined && !same}
      selected={selected === step.id}
      mayComment={mayComment}
      onSeen={onSeen}
    />
  );
}

function VirtualRows({ rows, draw, selected, digest }: { rows: Row[]; draw: (row: Row) => ReactNode; selected: string | null; digest: string }): ReactNode {
  const list = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    if (list.current) setMargin(list.current.getBoundingClientRect().top + window.scrollY);
  }, []);
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => 170,
    overscan: 4,
    scrollMargin: margin,
    getItemKey: (index) => {
      const row = rows[index];
      return row?.kind === "step" ? `${digest}/${row.step.id}` : index;
    },
  });
  const scrolledTo = useRef<string | null>(null);
  useLayoutEffect(() => {
    if (selected === null || scrolledTo.current === selected) return;
    const index = rows.findIndex((row) => row.kind === "step" && row.step.id === selected);
    if (index < 0) return;
    scrolledTo.current = selected;
    virtual.scrollToIndex(index, { align: "start" });
  }, [selected, rows, virtual]);
  return (
    <div ref={list} className="virtual" style={{ height: virtual.getTotalSize() }}>
      {virtual.getVirtualItems().map((item) => {
        const row = rows[item.index];
        return (
          <div
            key={item.key}
            ref={virtual.measureElement}
            data-index={item.index}
            className="virtual-row"
            style={{ transform: `translateY(${item.start - margin}px)` }}
          >
            {row ? draw(row) : null}
          </div>
        );
      })}
    </div>
  );
}
