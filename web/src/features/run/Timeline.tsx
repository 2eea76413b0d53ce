import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, type ReactNode } from "react";
import type { StepResult } from "../../api/types";
import { stateWord, timeline, type Bar, type RunLife, type StepLife } from "../../model/run";
import { duration } from "../../model/time";
import { Text } from "../../ui/Text";

type Row = StepResult & { life: StepLife | null };
type Props = { steps: Row[]; life: RunLife; critical: string[]; now: number; selected: string | null; onSelect: (id: string) => void };

/** Rows beyond this are drawn as far as they are on screen. */
const VIRTUAL_FROM = 80;
const ROW_PX = 40;

export function Timeline({ steps, life, critical, now, selected, onSelect }: Props): ReactNode {
  const onPath = useMemo(() => new Set(critical), [critical]);
  const { barOf, length } = timeline(life, onPath, now);
  const row = (index: number): ReactNode => {
    const step = steps[index];
    return step ? <TimelineRow step={step} bar={barOf(step.id)} now={now} selected={step.id === selected} onSelect={onSelect} /> : null;
  };
  return (
    <div className="timeline" role="group" aria-label="Steps in time">
      {steps.length <= VIRTUAL_FROM ? (
        steps.map((step, index) => <div key={step.id}>{row(index)}</div>)
      ) : (
        <VirtualRows count={steps.length} row={row} selected={steps.findIndex((step) => step.id === selected)} />
      )}
      <p className="timeline-scale quiet">
        <span>0</span>
        <span>{critical.length > 0 ? "━ critical path" : ""}</span>
        <span>{life.startedAt ? duration(length) : ""}</span>
      </p>
    </div>
  );
}

function VirtualRows({ count, row, selected }: { count: number; row: (index: number) => ReactNode; selected: number }): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count, getScrollElement: () => box.current, estimateSize: () => ROW_PX, overscan: 8 });
  useEffect(() => {
    if (selected >= 0) virtual.scrollToIndex(selected, { align: "auto" });
  }, [selected, virtual]);
  return (
    <div ref={box} className="timeline-box" tabIndex={0} aria-label="Steps">
      <div className="virtual" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => (
          <div key={item.key} className="virtual-row tight" style={{ transform: `translateY(${item.start}px)` }}>
            {row(item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}

function TimelineRow({ step, bar, now, selected, onSelect }: { step: Row; bar: Bar; now: number; selected: boolean; onSelect: (id: string) => void }): ReactNode {
  const state = stateWord(step.status);
  const took = step.durationMs > 0 ? duration(step.durationMs) : step.status === "running" && step.life?.startedAt ? duration(now - Date.parse(step.life.startedAt)) : "";
  return (
    <button type="button" className={`timeline-row ${selected ? "selected" : ""}`} aria-pressed={selected} onClick={() => onSelect(step.id)}>
      <span className={`state ${state.tone}`} aria-hidden="true">
        {state.glyph}
      </span>
      <span className="timeline-name">
        <b>
          <Text text={step.id} />
        </b>{" "}
        <span className="quiet">
          <Text text={step.title} />
        </span>
      </span>
      <span className="timeline-bar" aria-hidden="true">
        <span
          className={`bar ${state.tone} ${bar.critical ? "critical" : ""}`}
          style={{ left: `${bar.from * 100}%`, width: `max(${(bar.to - bar.from) * 100}%, ${bar.from < 1 ? 4 : 0}px)` }}
        />
      </span>
      <span className="timeline-took">
        {step.life?.progress && step.status === "running" ? `${step.life.progress.done}${step.life.progress.total ? `/${step.life.progress.total}` : ""}` : took}
        <span className={`state-word ${state.tone}`}> {state.word}</span>
      </span>
    </button>
  );
}
