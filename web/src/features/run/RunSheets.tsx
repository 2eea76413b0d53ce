import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { planPath, post } from "../../api/client";
import { refreshPlan } from "../../api/queries";
import type { RunAccepted, UndoPreview } from "../../api/types";
import { count, shortDigest } from "../../model/text";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { useAction } from "../../ui/hooks";
import { navigate } from "../../ui/router";
import { Loading, ProblemNote } from "../../ui/States";
import { Arguments, Text } from "../../ui/Text";

/** Shows the calls that would undo a run, and makes exactly those. */
export function UndoSheet({ plan, run, onClose }: { plan: string; run: string; onClose: () => void }): ReactNode {
  const preview = useQuery({ queryKey: ["undo", plan, run], queryFn: () => post<UndoPreview>(planPath(plan, "/undo"), { dryRun: true, run }), staleTime: 0, gcTime: 0 });
  const undo = useAction(async (digest: string) => {
    const begun = await post<RunAccepted>(planPath(plan, "/undo"), { digest, run });
    refreshPlan(plan);
    navigate({ page: "run", plan, run: begun.runId });
  });
  const shown = preview.data;
  return (
    <Dialog title="Undo this run" onClose={onClose} wide>
      {preview.isPending ? <Loading what="the calls" /> : null}
      <ProblemNote error={preview.error ?? undo.error} />
      {shown ? (
        <div className="stack">
          <p>{shown.steps.length === 0 ? "There is nothing to undo." : `${count(shown.steps.length, "call")}, the last step first:`}</p>
          {shown.steps.map((step) => (
            <div key={step.step} className="card">
              <p>
                <b>
                  <Text text={step.step} />
                </b>{" "}
                <code>
                  <Text text={step.tool} />
                </code>
              </p>
              <Arguments args={step.args} />
            </div>
          ))}
          {shown.kept.length > 0 ? (
            <div className="notice">
              <ul>
                {shown.kept.map((kept) => (
                  <li key={kept.step}>
                    <b>
                      <Text text={kept.step} />
                    </b>{" "}
                    stays: <Text text={kept.reason} />
                  </li>
                ))}
              </ul>
            </div>
          ) : null}
          <div className="row end">
            <Button tone="quiet" onClick={onClose}>
              Leave it
            </Button>
            <Button tone="danger" busy={undo.busy} disabled={shown.steps.length === 0} onClick={() => void undo.run(shown.digest)}>
              Make these calls <code>{shortDigest(shown.digest)}</code>
            </Button>
          </div>
        </div>
      ) : null}
    </Dialog>
  );
}

export function FailSheet({ plan, run, onClose }: { plan: string; run: string; onClose: () => void }): ReactNode {
  const [reason, setReason] = useState("");
  const fail = useAction(async () => {
    await post(planPath(plan, "/fail"), { run, reason });
    refreshPlan(plan);
    onClose();
  });
  return (
    <Dialog title="Mark as failed" onClose={onClose}>
      <div className="stack">
        <p className="quiet">Steps that have not ended will never run.</p>
        <label htmlFor="fail-reason">Why?</label>
        <textarea id="fail-reason" rows={3} value={reason} onChange={(event) => setReason(event.target.value)} />
        <ProblemNote error={fail.error} />
        <div className="row end">
          <Button tone="danger" busy={fail.busy} onClick={() => void fail.run()}>
            Mark as failed
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
