import { useState, type ReactNode } from "react";
import { post, request } from "../../api/client";
import { refreshPlan } from "../../api/queries";
import type { Json } from "../../api/types";
import { Button } from "../../ui/Button";
import { useAction } from "../../ui/hooks";
import { navigate } from "../../ui/router";
import { ProblemNote } from "../../ui/States";

type Created = { plan: { id: string } };

/** A plan from a goal, written by a model if there is one, or from a whole document. */
export default function NewPlanPage(): ReactNode {
  const [goal, setGoal] = useState("");
  const [text, setText] = useState("");
  const open = ({ plan }: Created) => {
    refreshPlan(plan.id);
    navigate({ page: "review", plan: plan.id });
  };
  const byGoal = useAction(async () => open(await post<Created>("/plan", { goal })));
  const byDocument = useAction(async () => {
    let document: Json;
    try {
      document = JSON.parse(text) as Json;
    } catch (error) {
      throw new Error(`this is not JSON: ${error instanceof Error ? error.message : ""}`);
    }
    open((await request<Created>("/plan", { method: "POST", body: document })).body);
  });
  return (
    <div className="page narrow">
      <h1>Propose a plan</h1>
      <form
        className="panel stack"
        onSubmit={(event) => {
          event.preventDefault();
          void byGoal.run();
        }}
      >
        <label htmlFor="goal">What should be done?</label>
        <textarea id="goal" rows={3} value={goal} onChange={(event) => setGoal(event.target.value)} />
        <p className="quiet">A model writes the steps if one is configured; otherwise this is a draft for you to fill. It takes a while.</p>
        <div>
          <Button type="submit" tone="accent" busy={byGoal.busy} disabled={goal.trim() === ""}>
            Propose
          </Button>
        </div>
        <ProblemNote error={byGoal.error} />
      </form>
      <form
        className="panel stack"
        onSubmit={(event) => {
          event.preventDefault();
          void byDocument.run();
        }}
      >
        <label htmlFor="document">Or a whole plan, as JSON</label>
        <textarea id="document" className="code" rows={10} value={text} spellCheck={false} onChange={(event) => setText(event.target.value)} />
        <div>
          <Button type="submit" busy={byDocument.busy} disabled={text.trim() === ""}>
            Propose this plan
          </Button>
        </div>
        <ProblemNote error={byDocument.error} />
      </form>
    </div>
  );
}
