// The plan as it is written: change arguments, order, and what is left out. Nothing is stored until it is saved.
import { closestCenter, DndContext, KeyboardSensor, PointerSensor, useSensor, useSensors, type DragEndEvent } from "@dnd-kit/core";
import { SortableContext, sortableKeyboardCoordinates, useSortable, verticalListSortingStrategy } from "@dnd-kit/sortable";
import { useEffect, useMemo, useState, type KeyboardEvent, type ReactNode } from "react";
import { planPath, post, Refusal, request } from "../../api/client";
import { queryClient, readPlan, useTools } from "../../api/queries";
import type { Edit, Finding, JsonObject, Plan, PlanStep, ToolLine } from "../../api/types";
import { addEdit, applyEdits, describeEdit, moveProblem, moveTo, neededBy, stepField } from "../../model/edits";
import { fieldsOf, parseForm, textOf } from "../../model/form";
import { oneLine } from "../../model/inbox";
import { count, visible } from "../../model/text";
import { Button } from "../../ui/Button";
import { useAction } from "../../ui/hooks";
import { SchemaForm } from "../../ui/SchemaForm";
import { ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";
import { VirtualRows } from "../../ui/VirtualRows";

type Props = { plan: Plan; etag: string | null; at: string | null; onSaved: () => void };

/** Lists that are longer than this are drawn as far as they are on screen. */
const VIRTUAL_FROM = 80;

export default function EditPlan({ plan, etag, at, onSaved }: Props): ReactNode {
  const tools = useTools();
  // The edits are made to the version that was opened, also when others store another one meanwhile.
  const [base] = useState({ plan, etag });
  const [edits, setEdits] = useState<Edit[]>([]);
  const [said, setSaid] = useState("");
  const [adding, setAdding] = useState(false);
  const [opened, setOpened] = useState<ReadonlySet<string>>(() => new Set(at === null ? [] : [at]));
  const steps = useMemo(() => applyEdits(base.plan.steps ?? [], edits), [base, edits]);
  const needing = useMemo(() => neededBy(steps), [steps]);
  const byName = useMemo(() => new Map((tools.data ?? []).map((tool) => [`${tool.server}.${tool.name}`, tool])), [tools.data]);
  const toggle = (id: string) =>
    setOpened((before) => {
      const after = new Set(before);
      if (!after.delete(id)) after.add(id);
      return after;
    });
  const add = (edit: Edit | null) => {
    if (edit !== null) setEdits((before) => addEdit(before, edit));
  };
  const move = (id: string, to: number) => {
    const problem = moveProblem(steps, id, to);
    if (problem === null) add(moveTo(steps, id, to));
    setSaid(problem ?? `${id} is at place ${to + 1} of ${steps.length}`);
  };
  const save = useAction(async () => {
    await store(base.plan, base.etag, edits);
    onSaved();
  });
  const findings = save.error instanceof Refusal ? (save.error.problem.findings ?? []) : [];
  const sensors = useSensors(
    useSensor(PointerSensor, { activationConstraint: { distance: 4 } }),
    useSensor(KeyboardSensor, { coordinateGetter: sortableKeyboardCoordinates }),
  );
  const drop = ({ active, over }: DragEndEvent) => {
    if (over === null || active.id === over.id) return;
    const to = steps.findIndex((step) => step.id === over.id);
    move(String(active.id), to);
  };
  const draw = (index: number): ReactNode => {
    const step = steps[index];
    if (step === undefined) return null;
    return (
      <EditStep
        key={step.id}
        step={step}
        index={index}
        last={index === steps.length - 1}
        open={opened.has(step.id)}
        tool={byName.get(step.tool ?? "")}
        needed={needing.get(step.id) ?? []}
        findings={findings.filter((finding) => finding.step === step.id)}
        onOpen={() => toggle(step.id)}
        onMove={(to) => move(step.id, to)}
        onEdit={add}
      />
    );
  };
  useEffect(() => {
    if (at !== null) document.getElementById(`edit-${at}`)?.scrollIntoView({ block: "center" });
  }, [at]);
  return (
    <div className="stack">
      <p className="quiet">Drag a step by its handle, or move it with Alt ↑ and Alt ↓. Every save is a new version, which has to be approved.</p>
      <p role="status" className={said.includes("needs") ? "bad" : "quiet"}>
        {said}
      </p>
      <DndContext sensors={sensors} collisionDetection={closestCenter} onDragEnd={drop}>
        <SortableContext items={steps.map((step) => step.id)} strategy={verticalListSortingStrategy}>
          {steps.length <= VIRTUAL_FROM ? (
            <div className="edit-list" role="list">
              {steps.map((_, index) => draw(index))}
            </div>
          ) : (
            <VirtualRows
              role="list"
              count={steps.length}
              estimate={76}
              keyOf={(index) => steps[index]?.id ?? `row ${index}`}
              draw={draw}
              shown={at === null ? null : { key: at, index: steps.findIndex((step) => step.id === at) }}
            />
          )}
        </SortableContext>
      </DndContext>
      {adding ? (
        <AddStep
          tools={tools.data ?? []}
          steps={steps}
          onAdd={(edit) => {
            add(edit);
            setAdding(false);
          }}
          onCancel={() => setAdding(false)}
        />
      ) : (
        <div>
          <Button onClick={() => setAdding(true)}>Add a step</Button>
        </div>
      )}
      <Regenerate plan={base.plan.id} onDone={onSaved} />
      <ProblemNote error={save.error} />
      {edits.length > 0 ? (
        <div className="notice save-bar">
          <p>
            <b>{count(edits.length, "change")} not saved:</b> <Text text={edits.map(describeEdit).join(", ")} />
          </p>
          <Button tone="quiet" onClick={() => setEdits([])}>
            Discard
          </Button>
          <Button tone="accent" busy={save.busy} onClick={() => void save.run()}>
            Save as version {base.plan.version + 1}
          </Button>
        </div>
      ) : null}
    </div>
  );
}

/** Has the model of the service write the next version. */
function Regenerate({ plan, onDone }: { plan: string; onDone: () => void }): ReactNode {
  const [feedback, setFeedback] = useState("");
  const again = useAction(async () => {
    await post(planPath(plan, "/regenerate"), feedback.trim() === "" ? {} : { feedback });
    onDone();
  });
  return (
    <details className="card">
      <summary>Have a model write it again</summary>
      <div className="stack">
        <label htmlFor="feedback">What should be different?</label>
        <textarea id="feedback" rows={2} value={feedback} onChange={(event) => setFeedback(event.target.value)} />
        <div>
          <Button busy={again.busy} onClick={() => void again.run()}>
            Regenerate
          </Button>
        </div>
        <ProblemNote error={again.error} />
      </div>
    </details>
  );
}

/** Stores the edits. A tag that only comments moved is taken anew; another version is not overwritten. */
async function store(plan: Plan, etag: string | null, edits: Edit[]): Promise<void> {
  const send = (tag: string | null) => request(planPath(plan.id), { method: "PATCH", body: { edits }, ...(tag ? { ifMatch: tag } : {}) });
  try {
    await send(etag);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 412) throw error;
    const current = await readPlan(plan.id);
    if (current.plan.version !== plan.version) {
      throw new Refusal({
        ...error.problem,
        detail: `version ${current.plan.version} was stored while you edited version ${plan.version}`,
        hint: "look at its changes, discard yours, and make them again",
      });
    }
    await send(current.etag);
  }
  await queryClient.invalidateQueries({ queryKey: ["plan", plan.id] });
}

type StepProps = {
  step: PlanStep;
  index: number;
  last: boolean;
  open: boolean;
  tool: ToolLine | undefined;
  needed: string[];
  findings: Finding[];
  onOpen: () => void;
  onMove: (to: number) => void;
  onEdit: (edit: Edit) => void;
};

function EditStep({ step, index, last, open, tool, needed, findings, onOpen, onMove, onEdit }: StepProps): ReactNode {
  const sortable = useSortable({ id: step.id });
  const shift = sortable.transform ? `translate3d(0, ${Math.round(sortable.transform.y)}px, 0)` : undefined;
  const keys = (event: KeyboardEvent) => {
    if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
    event.preventDefault();
    onMove(event.key === "ArrowUp" ? index - 1 : index + 1);
  };
  return (
    <div
      id={`edit-${step.id}`}
      role="listitem"
      ref={sortable.setNodeRef}
      className={`card edit-step ${step.skip ? "skipped" : ""} ${sortable.isDragging ? "dragging" : ""}`}
      style={{ transform: shift, transition: sortable.transition }}
      onKeyDown={keys}
      aria-label={`Step ${step.id}`}
    >
      <div className="edit-head">
        <button type="button" className="handle" aria-label={`Move step ${step.id}`} {...sortable.attributes} {...sortable.listeners}>
          ⠿
        </button>
        <span className="number">{index + 1}</span>
        <span className="edit-name">
          <b>
            <Text text={step.id} />
          </b>{" "}
          <code className="tool">
            <Text text={step.tool ?? kindOf(step)} />
          </code>{" "}
          {step.skip ? <span className="tag">skipped</span> : null}
          <span className="quiet">
            <Text text={step.title ?? oneLine(step.args ?? {}, 80)} />
          </span>
        </span>
        <span className="edit-buttons">
          <Button tone="quiet" label={`Move ${step.id} up`} disabled={index === 0} onClick={() => onMove(index - 1)}>
            ↑
          </Button>
          <Button tone="quiet" label={`Move ${step.id} down`} disabled={last} onClick={() => onMove(index + 1)}>
            ↓
          </Button>
          <Button tone="quiet" onClick={onOpen} label={`${open ? "Close" : "Edit"} ${step.id}`}>
            {open ? "Close" : "Edit"}
          </Button>
          <Button tone="quiet" onClick={() => onEdit({ op: step.skip ? "unskip" : "skip", step: step.id })} label={`${step.skip ? "Do not skip" : "Skip"} ${step.id}`}>
            {step.skip ? "Do it" : "Skip"}
          </Button>
          <Button
            tone="quiet"
            label={`Remove ${step.id}`}
            why={needed.length > 0 ? `${needed.join(", ")} ${needed.length === 1 ? "needs" : "need"} it` : null}
            onClick={() => onEdit({ op: "remove", steps: [step.id] })}
          >
            Remove
          </Button>
        </span>
      </div>
      {findings.map((finding) => (
        <p key={finding.message} className="bad">
          <Text text={finding.message} />
        </p>
      ))}
      {open ? <StepForm step={step} tool={tool} onEdit={onEdit} /> : null}
    </div>
  );
}

function kindOf(step: PlanStep): string {
  if (step.think) return "think";
  if (step.agent) return "agent";
  if (step.input) return "input";
  return step.plan ? `plan ${step.plan.id}` : "nothing";
}

function StepForm({ step, tool, onEdit }: { step: PlanStep; tool: ToolLine | undefined; onEdit: (edit: Edit) => void }): ReactNode {
  const args = step.args ?? {};
  const fields = fieldsOf(tool?.inputSchema, args);
  const [texts, setTexts] = useState<Record<string, string>>(() => Object.fromEntries(fields.map((field) => [field.name, textOf(field, args[field.name])])));
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [title, setTitle] = useState(step.title ?? "");
  const change = (name: string, text: string) => {
    const next = { ...texts, [name]: text };
    setTexts(next);
    const parsed = parseForm(fields, next);
    setErrors(parsed.errors);
    if (Object.keys(parsed.errors).length === 0) onEdit({ op: "set", path: stepField(step.id, "args"), value: parsed.value });
  };
  return (
    <div className="step-form">
      <div className="form-field">
        <label htmlFor={`title-${step.id}`}>Title</label>
        <input
          id={`title-${step.id}`}
          type="text"
          value={title}
          onChange={(event) => {
            setTitle(event.target.value);
            onEdit({ op: "set", path: stepField(step.id, "title"), value: event.target.value });
          }}
        />
      </div>
      {step.tool ? <SchemaForm fields={fields} texts={texts} errors={errors} onChange={change} /> : <p className="quiet">This step calls no tool; edit it with planwright edit.</p>}
      {step.tool && tool === undefined ? <p className="quiet">No server offers this tool now, so its fields are those of the plan.</p> : null}
    </div>
  );
}

function AddStep({ tools, steps, onAdd, onCancel }: { tools: ToolLine[]; steps: PlanStep[]; onAdd: (edit: Edit) => void; onCancel: () => void }): ReactNode {
  const [id, setId] = useState("");
  const [name, setName] = useState("");
  const [after, setAfter] = useState(steps.at(-1)?.id ?? "");
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [errors, setErrors] = useState<Record<string, string>>({});
  const tool = tools.find((other) => `${other.server}.${other.name}` === name);
  const fields = fieldsOf(tool?.inputSchema);
  const taken = steps.some((step) => step.id === id);
  const submit = () => {
    const parsed = parseForm(fields, texts);
    setErrors(parsed.errors);
    if (Object.keys(parsed.errors).length > 0) return;
    const step: PlanStep = { id, tool: name, args: parsed.value as JsonObject };
    onAdd({ op: "add", step, ...(after ? { after } : {}) });
  };
  return (
    <form
      className="card stack"
      aria-label="Add a step"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <div className="form-field">
        <label htmlFor="add-id">Name</label>
        <input id="add-id" type="text" value={id} onChange={(event) => setId(event.target.value)} aria-invalid={taken} />
        {taken ? <p className="bad">There is a step {id} already.</p> : null}
      </div>
      <div className="form-field">
        <label htmlFor="add-tool">Tool</label>
        <select id="add-tool" value={name} onChange={(event) => setName(event.target.value)}>
          <option value="">choose …</option>
          {tools.map((other) => (
            <option key={`${other.server}.${other.name}`} value={`${other.server}.${other.name}`}>
              {visible(`${other.server}.${other.name}`)}
            </option>
          ))}
        </select>
        {tool?.description ? (
          <p className="quiet">
            <Text text={tool.description} />
          </p>
        ) : null}
      </div>
      <div className="form-field">
        <label htmlFor="add-after">After</label>
        <select id="add-after" value={after} onChange={(event) => setAfter(event.target.value)}>
          {steps.map((step) => (
            <option key={step.id}>{step.id}</option>
          ))}
        </select>
      </div>
      <SchemaForm fields={fields} texts={texts} errors={errors} onChange={(field, text) => setTexts({ ...texts, [field]: text })} />
      <div className="row end">
        <Button tone="quiet" onClick={onCancel}>
          Cancel
        </Button>
        <Button type="submit" tone="accent" disabled={!/^[A-Za-z0-9_-]+$/.test(id) || taken || name === ""}>
          Add
        </Button>
      </div>
    </form>
  );
}
