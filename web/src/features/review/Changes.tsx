import { useState, type ReactNode } from "react";
import { planPath, post } from "../../api/client";
import { refreshPlan, useDiff, useVersions } from "../../api/queries";
import type { Diff, FieldChange, Plan, SafeguardLoss } from "../../api/types";
import { compareLines } from "../../model/diff";
import { ago } from "../../model/time";
import { count } from "../../model/text";
import { Button } from "../../ui/Button";
import { useAction, useNow } from "../../ui/hooks";
import { Loading, ProblemNote } from "../../ui/States";
import { LineDiff } from "../../ui/Diff";
import { Text, Value } from "../../ui/Text";

/** What is different between two versions, and what became of the safeguards. */
export function Changes({ plan, mayEdit }: { plan: Plan; mayEdit: boolean }): ReactNode {
  const versions = useVersions(plan.id);
  const now = useNow();
  const [from, setFrom] = useState<number | null>(plan.version > 1 ? plan.version - 1 : null);
  const [to, setTo] = useState<number | null>(plan.version);
  const diff = useDiff(plan.id, from, to);
  const restore = useAction(async (version: number) => {
    await post(planPath(plan.id, "/restore"), { version, basedOn: plan.version });
    refreshPlan(plan.id);
  });
  if (versions.isPending) return <Loading what="the versions" />;
  const lines = versions.data ?? [];
  const pick = (value: number | null, set: (n: number) => void, label: string) => (
    <label>
      {label}{" "}
      <select aria-label={`${label} version`} value={value ?? ""} onChange={(event) => set(Number(event.target.value))}>
        {value === null ? <option value="">–</option> : null}
        {lines.map((line) => (
          <option key={line.version} value={line.version}>
            version {line.version}
            {line.approved ? ", approved" : ""}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <div className="stack">
      {lines.length > 1 ? (
        <div className="row">
          {pick(from, setFrom, "From")}
          {pick(to, setTo, "To")}
        </div>
      ) : null}
      <ProblemNote error={versions.error ?? diff.error ?? restore.error} />
      {lines.length === 1 ? <p className="quiet">There is one version; nothing to compare.</p> : null}
      {lines.length > 1 && from === to ? <p className="quiet">Choose two versions that are not the same.</p> : null}
      {diff.isLoading ? <Loading what="the differences" /> : null}
      {diff.data && from !== null && from !== to ? <DiffView diff={diff.data} /> : null}
      <h2 className="group">Versions</h2>
      <ul className="lines">
        {lines.map((line) => (
          <li key={line.version}>
            <b>{line.version}</b> by {line.by.kind} <Text text={line.by.name} /> <span className="quiet">{ago(line.at, now)}</span>{" "}
            {line.reason ? <Text text={line.reason} /> : null}
            {line.current ? <span className="tag">current</span> : null}
            {line.approved ? <span className="tag seen">approved</span> : null}
            <span className="grow" />
            {!line.current ? (
              <Button
                tone="quiet"
                onClick={() => {
                  setFrom(line.version);
                  setTo(plan.version);
                }}
              >
                Compare<span className="only-read"> version {line.version} with the current one</span>
              </Button>
            ) : null}
            {!line.current && mayEdit ? (
              <Button tone="quiet" busy={restore.busy} onClick={() => void restore.run(line.version)}>
                Restore<span className="only-read"> version {line.version}</span>
              </Button>
            ) : null}
          </li>
        ))}
      </ul>
    </div>
  );
}

export function DiffView({ diff }: { diff: Diff }): ReactNode {
  const nothing = diff.fields.length === 0 && diff.steps.length === 0;
  return (
    <div className="stack">
      <Safeguards losses={diff.safeguards ?? []} />
      {nothing ? <p className="quiet">Both are the same.</p> : <p>{diff.executable ? "What is executed is different." : "Only words are different."}</p>}
      <Fields fields={diff.fields} />
      {diff.steps.map((step) => (
        <div key={step.id} className={`card change ${step.kind}`}>
          <p>
            <b>
              {step.kind === "added" ? "+ " : step.kind === "removed" ? "− " : "~ "}
              <Text text={step.id} />
            </b>{" "}
            {step.kind}
            {step.moved && step.kind !== "moved" ? ", moved" : ""}
            {step.from != null && step.to != null && step.moved ? ` from place ${step.from} to ${step.to}` : ""}
            {step.executable ? "" : " · only words"}
          </p>
          <Fields fields={step.fields} />
        </div>
      ))}
    </div>
  );
}

function Fields({ fields }: { fields: FieldChange[] }): ReactNode {
  return fields.map((field) => (
    <div key={field.path} className="field-change">
      <p className="quiet">
        <Text text={field.path} />
        {field.executable ? "" : " · only words"}
      </p>
      <FieldValues field={field} />
    </div>
  ));
}

/** Texts of several lines are compared by their lines, other values as a whole. */
function FieldValues({ field: { path, before, after } }: { field: FieldChange }): ReactNode {
  if (typeof before === "string" && typeof after === "string" && (before.includes("\n") || after.includes("\n"))) {
    return (
      <figure className="diff">
        <LineDiff lines={compareLines(before, after)} label={`Changes of ${path}`} before="before" after="after" />
      </figure>
    );
  }
  return (
    <>
      {before !== undefined ? (
        <div className="before">
          <span className="only-read">before</span>
          <Value value={before} />
        </div>
      ) : null}
      {after !== undefined ? (
        <div className="after">
          <span className="only-read">after</span>
          <Value value={after} />
        </div>
      ) : null}
    </>
  );
}

/** What is other than the version that was agreed to: only that needs the yes. */
export function SinceAgreed({ changes }: { changes: Plan["changes"] }): ReactNode {
  if (!changes?.diff) return null;
  const agreed = changes.agreed ?? [];
  return (
    <details className="card since" open>
      <summary>
        {count(changes.diff.steps.length, "step")} changed since version {changes.since.version} was agreed to
      </summary>
      <DiffView diff={changes.diff} />
      {agreed.length > 0 ? (
        <p className="quiet">
          As they were agreed to: <Text text={agreed.join(", ")} />
        </p>
      ) : null}
    </details>
  );
}

/** Safeguards that a change removes are red and named. */
export function Safeguards({ losses }: { losses: SafeguardLoss[] }): ReactNode {
  if (losses.length === 0) return null;
  return (
    <div className="problem">
      <p>
        <b>{count(losses.length, "safeguard")} lost:</b>
      </p>
      <ul>
        {losses.map((loss, index) => (
          <li key={index}>
            {loss.step ? (
              <>
                step <Text text={loss.step} />:{" "}
              </>
            ) : null}
            <Text text={loss.path} /> {loss.kind}
            {loss.before !== undefined ? (
              <>
                {" "}
                (was <Text text={JSON.stringify(loss.before)} />
                {loss.after !== undefined ? (
                  <>
                    , is <Text text={JSON.stringify(loss.after)} />
                  </>
                ) : null}
                )
              </>
            ) : null}
          </li>
        ))}
      </ul>
    </div>
  );
}
