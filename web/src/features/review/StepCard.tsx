// One step as it would be approved: what it does to the world, what is sent, and what was said about it.
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useStats } from "../../api/queries";
import type { CallBriefing, Json, StepBriefing, StepVerdict, Thread } from "../../api/types";
import { changesSomething, effectMark } from "../../model/briefing";
import { changesOf } from "../../model/seen";
import { count } from "../../model/text";
import { duration } from "../../model/time";
import { Button } from "../../ui/Button";
import { FileDiff, LineDiff } from "../../ui/Diff";
import { ProblemNote } from "../../ui/States";
import { Arguments, isShownWhole, LongText, Quote, Text, Value } from "../../ui/Text";
import { CommentBox, ThreadView } from "./Comments";

type Props = {
  plan: string;
  step: StepBriefing;
  verdict: StepVerdict | undefined;
  threads: Thread[];
  seen: boolean;
  /** What the reader saw of it, if it is another one now. */
  before: string | undefined;
  selected: boolean;
  mayComment: boolean;
  onSeen: (step: StepBriefing) => void;
  onEdit?: (step: string) => void;
};

export function StepCard({ plan, step, verdict, threads, seen, before, selected, mayComment, onSeen, onEdit }: Props): ReactNode {
  const [commenting, setCommenting] = useState(false);
  const [more, setMore] = useState(false);
  const [left, setLeft] = useState(() => countCuts(step));
  const opened = () => setLeft((n) => Math.max(0, n - 1));
  const { start, end } = useOnScreen(left === 0 && !seen, () => onSeen(step));
  const mark = effectMark(step.effect.kind);
  return (
    <article
      id={`step-${step.id}`}
      className={`card ${changesSomething(step.effect.kind) ? "changing" : ""} ${selected ? "selected" : ""}`}
      aria-label={`Step ${step.id}`}
      tabIndex={-1}
    >
      <span ref={start} className="edge" />
      <header className="card-head">
        <span className={`mark ${step.effect.kind}`} title={mark.word} aria-hidden="true">
          {mark.glyph}
        </span>
        <h3>
          <Text text={step.id} />
        </h3>
        <code className="tool">
          <Text text={toolOf(step)} />
        </code>
        {step.title ? <Quote text={step.title} /> : null}
        <span className="grow" />
        {before !== undefined ? <span className="tag ask">changed since you looked</span> : null}
        {step.gate ? <span className="tag ask">asks again before it runs</span> : null}
        <span className={seen ? "tag seen" : "tag"}>{seen ? "seen" : left > 0 ? "show all to read it" : "not seen yet"}</span>
      </header>
      <p className={`effect ${step.effect.kind}`}>
        <Text text={step.effect.words} />
      </p>
      {before !== undefined ? (
        <figure className="diff">
          <LineDiff lines={changesOf(before, step)} label="What changed since you looked" before="as you saw it" after="as it is now" />
        </figure>
      ) : null}
      {step.warnings.map((warning) => (
        <p key={warning} className="warning">
          <b>Warning:</b> <Text text={warning} />
        </p>
      ))}
      <Action step={step} onWhole={opened} />
      <Conditions step={step} verdict={verdict} onWhole={opened} />
      {step.steps.length > 0 ? (
        <details className="sub-steps" open>
          <summary>{count(step.steps.length, "step")} of the plan it runs</summary>
          {step.steps.map((inner) => (
            <InnerStep key={inner.id} step={inner} onWhole={opened} />
          ))}
        </details>
      ) : null}
      <div className="threads">
        {threads.map((thread) => (
          <ThreadView key={thread.id} plan={plan} thread={thread} mayComment={mayComment} />
        ))}
        {commenting ? (
          <CommentBox plan={plan} step={step.id} onDone={() => setCommenting(false)} />
        ) : null}
        <div className="row">
          {mayComment && !commenting ? (
            <Button tone="quiet" onClick={() => setCommenting(true)}>
              Comment<span className="only-read"> on step {step.id}</span>
            </Button>
          ) : null}
          {onEdit ? (
            <Button tone="quiet" onClick={() => onEdit(step.id)}>
              Change<span className="only-read"> step {step.id}</span>
            </Button>
          ) : null}
          {step.action.kind === "call" ? (
            <Button tone="quiet" onClick={() => setMore(!more)} expanded={more}>
              JSON and history<span className="only-read"> of step {step.id}</span>
            </Button>
          ) : null}
        </div>
        {more && step.action.kind === "call" ? <Details call={step.action} /> : null}
      </div>
      <span ref={end} className="edge" />
    </article>
  );
}

/** The call exactly as it would be sent, and how its tool did so far. */
function Details({ call }: { call: CallBriefing }): ReactNode {
  const stats = useStats(null);
  const tool = stats.data?.tools.find((line) => line.tool === call.tool);
  return (
    <div className="stack details">
      <Value value={call.args} />
      <p className="quiet">
        {stats.isPending ? "Loading how its tool did so far …" : null}
        {stats.isSuccess && tool === undefined ? "Its tool was never called here." : null}
        {tool ? `Its tool so far: ${count(tool.calls, "call")}, ${tool.failures} failed, half within ${duration(tool.p50Ms)}, 95 % within ${duration(tool.p95Ms)}.` : null}
      </p>
      <ProblemNote error={stats.error} />
    </div>
  );
}

function InnerStep({ step, onWhole }: { step: StepBriefing; onWhole: () => void }): ReactNode {
  const mark = effectMark(step.effect.kind);
  return (
    <div className="inner-step">
      <p>
        <span className={`mark ${step.effect.kind}`} aria-hidden="true">
          {mark.glyph}
        </span>{" "}
        <b>
          <Text text={step.id} />
        </b>{" "}
        <code className="tool">
          <Text text={toolOf(step)} />
        </code>{" "}
        <span className={`effect ${step.effect.kind}`}>
          <Text text={step.effect.words} />
        </span>
      </p>
      <Action step={step} onWhole={onWhole} />
      <Conditions step={step} verdict={undefined} onWhole={onWhole} />
      {step.steps.map((inner) => (
        <InnerStep key={inner.id} step={inner} onWhole={onWhole} />
      ))}
    </div>
  );
}

export function toolOf(step: StepBriefing): string {
  return step.action.kind === "call" ? step.action.tool : step.action.kind === "plan" ? `plan ${step.action.plan}` : step.action.kind;
}

/** Values of a step, and of the steps of the plan it runs, that are too long to be shown at once. */
function countCuts(step: StepBriefing): number {
  return step.steps.reduce((sum, inner) => sum + countCuts(inner), countOwnCuts(step));
}

function countOwnCuts({ action, undo, forEach }: StepBriefing): number {
  const around = (undo ? countCutArguments(undo.args) : 0) + (forEach ? countCut(forEach.items) : 0);
  switch (action.kind) {
    case "call":
      return around + countCutArguments(action.args, diffedArgument(action));
    case "think":
      return around + countCut(action.prompt);
    case "agent":
      return around + countCut(action.instruction);
    case "plan":
      return around + countCutArguments(action.inputs);
    case "input":
    case "nothing":
      return around;
  }
}

function countCut(value: Json): number {
  return isShownWhole(value) ? 0 : 1;
}

function countCutArguments(args: Json, leaveOut?: string): number {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return countCut(args);
  return Object.entries(args).reduce((sum, [name, value]) => sum + (name === leaveOut ? 0 : countCut(value)), 0);
}

/** The argument that the comparison with the file shows already, if there is one. */
function diffedArgument(call: CallBriefing): string | undefined {
  return call.file && call.file.diff.length > 0 ? "content" : undefined;
}

function Action({ step, onWhole }: { step: StepBriefing; onWhole: () => void }): ReactNode {
  const { action } = step;
  const whole = { onWhole };
  switch (action.kind) {
    case "call": {
      const leaveOut = diffedArgument(action);
      return (
        <>
          {action.command ? <pre className="value command"><Text text={action.command} /></pre> : null}
          <Arguments args={action.args} {...(leaveOut ? { leaveOut } : {})} {...whole} />
          {action.file ? <FileDiff file={action.file} /> : null}
          {action.late.length > 0 ? (
            <p className="late">
              Known only later: <Text text={action.late.map((path) => path.replace(/^\//, "")).join(", ")} />. Values in ‹ › come from other steps.
            </p>
          ) : null}
        </>
      );
    }
    case "think":
      return <LongText text={action.prompt} {...whole} />;
    case "agent":
      return (
        <>
          <LongText text={action.instruction} {...whole} />
          <p>
            May make {count(action.maxCalls, "call")}
            {action.executor ? (
              <>
                {" "}
                through <Text text={action.executor} />
              </>
            ) : null}
            {action.tools.length > 0 ? ", with these tools:" : ", with no tools"}
          </p>
          <ul>
            {action.tools.map((tool) => (
              <li key={tool.tool}>
                <code>
                  <Text text={tool.tool} />
                </code>{" "}
                <Text text={tool.effect.words} />
              </li>
            ))}
          </ul>
        </>
      );
    case "input":
      return action.message ? (
        <p>
          Asks: <Quote text={action.message} />
        </p>
      ) : null;
    case "plan":
      return <Arguments args={action.inputs} {...whole} />;
    case "nothing":
      return null;
  }
}

function Conditions({ step, verdict, onWhole }: { step: StepBriefing; verdict: StepVerdict | undefined; onWhole: () => void }): ReactNode {
  const whole = { onWhole };
  const facts: [string, ReactNode][] = [];
  if (step.after.length > 0) facts.push(["after", <Text key="v" text={step.after.join(", ")} />]);
  if (step.when) facts.push(["only when", <code key="v"><Text text={step.when} /></code>]);
  if (step.forEach)
    facts.push([
      "for each of",
      <span key="v">
        <Text text={step.forEach.over} />
        {step.forEach.count != null ? ` (${step.forEach.count})` : ""}
        {step.forEach.items.length > 0 ? <Value value={step.forEach.items} {...whole} /> : null}
      </span>,
    ]);
  if (step.constraints.length > 0) facts.push(["has to hold", <code key="v"><Text text={step.constraints.join("; ")} /></code>]);
  if (step.expect) facts.push(["checks", <code key="v"><Text text={step.expect} /></code>]);
  if (step.retries > 0) facts.push(["tries again", `up to ${count(step.retries, "time")}`]);
  if (step.timeoutSeconds != null) facts.push(["stops after", `${step.timeoutSeconds} s`]);
  if (step.secrets.length > 0) facts.push(["uses secrets", <Text key="v" text={step.secrets.join(", ")} />]);
  if (step.undo)
    facts.push([
      "undone by",
      <span key="v">
        <code>
          <Text text={step.undo.tool} />
        </code>{" "}
        <Arguments args={step.undo.args} {...whole} />
      </span>,
    ]);
  facts.push([
    "policy",
    <span key="v">
      {step.verdict === "ask" ? "asks a person" : step.verdict === "deny" ? "forbids it" : "allows it"}: <Text text={step.reason} />
      {step.rule ? (
        <>
          {" "}
          (rule <Text text={step.rule} />)
        </>
      ) : null}
      {verdict?.undecided && verdict.undecided.length > 0 ? (
        <>
          {" "}
          · decided once known: <Text text={verdict.undecided.join(", ")} />
        </>
      ) : null}
    </span>,
  ]);
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Notes once both edges of an element were visible. */
function useOnScreen(wanted: boolean, onSeen: () => void): { start: React.RefObject<HTMLSpanElement | null>; end: React.RefObject<HTMLSpanElement | null> } {
  const start = useRef<HTMLSpanElement>(null);
  const end = useRef<HTMLSpanElement>(null);
  const tell = useRef(onSeen);
  tell.current = onSeen;
  useEffect(() => {
    if (!wanted || start.current === null || end.current === null) return;
    const seen = new Set<Element>();
    // What is under the bars at the top and at the bottom is not seen.
    const observer = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) if (entry.isIntersecting) seen.add(entry.target);
        if (seen.size === 2) tell.current();
      },
      { rootMargin: "-48px 0px -64px 0px" },
    );
    observer.observe(start.current);
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [wanted]);
  return { start, end };
}
