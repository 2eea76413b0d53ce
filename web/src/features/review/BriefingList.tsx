// The steps as they would be approved: what changes something first and open, what only reads folded.
import { useMemo, type ReactNode } from "react";
import type { Briefing, Plan, StepBriefing, Thread } from "../../api/types";
import { groupSteps } from "../../model/briefing";
import { contentOf, type Seen } from "../../model/seen";
import { VirtualRows } from "../../ui/VirtualRows";
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
  /** Opens the editor at a step; absent if the reader may not edit. */
  onEdit?: (step: string) => void;
};

type Row = { kind: "heading"; words: string } | { kind: "fold"; count: number } | { kind: "step"; step: StepBriefing };

/** Lists that are longer than this are drawn as far as they are on screen. */
const VIRTUAL_FROM = 40;

export function BriefingList(props: Props): ReactNode {
  const { briefing, open, onOpen, selected } = props;
  const rows = useMemo(() => rowsOf(briefing, open), [briefing, open]);
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
          <div key={keyOf(briefing, row, index)}>{draw(row)}</div>
        ))}
      </div>
    );
  }
  return (
    <VirtualRows
      count={rows.length}
      estimate={170}
      keyOf={(index) => keyOf(briefing, rows[index], index)}
      draw={(index) => {
        const row = rows[index];
        return row ? draw(row) : null;
      }}
      shown={selected === null ? null : { key: selected, index: rows.findIndex((row) => row.kind === "step" && row.step.id === selected) }}
    />
  );
}

function rowsOf(briefing: Briefing, open: boolean): Row[] {
  const { changing, others } = groupSteps(briefing);
  const rows: Row[] = [{ kind: "heading", words: changing.length === 0 ? "Nothing is changed" : `Changes something (${changing.length})` }];
  for (const step of changing) rows.push({ kind: "step", step });
  if (others.length === 0) return rows;
  rows.push({ kind: "fold", count: others.length });
  if (open) for (const step of others) rows.push({ kind: "step", step });
  return rows;
}

function keyOf(briefing: Briefing, row: Row | undefined, index: number): string {
  return row?.kind === "step" ? `${briefing.digest}/${row.step.id}` : `row ${index}`;
}

function Card({ plan, step, threads, seen, selected, mayComment, onSeen, onEdit }: Props & { step: StepBriefing }): ReactNode {
  const before = seen.get(step.id);
  const same = before === contentOf(step);
  return (
    <StepCard
      plan={plan.id}
      step={step}
      verdict={plan.policy.find((verdict) => verdict.step === step.id)}
      threads={threads.filter((thread) => thread.step === step.id)}
      seen={same}
      before={same ? undefined : before}
      selected={selected === step.id}
      mayComment={mayComment}
      onSeen={onSeen}
      {...(onEdit ? { onEdit } : {})}
    />
  );
}
