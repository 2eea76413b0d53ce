import { useState, type ReactNode } from "react";
import { post, stepPath } from "../../api/client";
import { refreshPlan } from "../../api/queries";
import type { JsonObject, Question } from "../../api/types";
import { fieldsOf, parseForm } from "../../model/form";
import { Button } from "../../ui/Button";
import { useAction } from "../../ui/hooks";
import { SchemaForm } from "../../ui/SchemaForm";
import { isServerSignIn, SignInToServer } from "../../ui/SignInToServer";
import { ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";

type Props = { plan: string; run: string; step: string; questions: Question[]; digest: string; why: string | null };

/** What a step asks a person. An answer names the question it was given to. */
export function AnswerForm({ plan, run, step, questions, digest, why }: Props): ReactNode {
  const [texts, setTexts] = useState<Record<string, Record<string, string>>>({});
  const [errors, setErrors] = useState<Record<string, Record<string, string>>>({});
  const send = useAction(async (decline: boolean) => {
    if (decline) {
      await post(stepPath(plan, step, "input"), { question: digest, decline: true, run });
      refreshPlan(plan);
      return;
    }
    const answers: Record<string, JsonObject> = {};
    const wrong: Record<string, Record<string, string>> = {};
    for (const question of questions) {
      const parsed = parseForm(fieldsOf(question.schema), texts[question.key] ?? {});
      answers[question.key] = parsed.value;
      if (Object.keys(parsed.errors).length > 0) wrong[question.key] = parsed.errors;
    }
    setErrors(wrong);
    if (Object.keys(wrong).length > 0) return;
    const [only] = questions;
    const values = questions.length === 1 && only ? { values: answers[only.key] ?? {} } : { answers };
    await post(stepPath(plan, step, "input"), { question: digest, run, ...values });
    refreshPlan(plan);
  });
  return (
    <form
      className="asked stack"
      aria-label="Answer"
      onSubmit={(event) => {
        event.preventDefault();
        void send.run(false);
      }}
    >
      {questions.map((question) => (
        <div key={question.key} className="stack">
          <p className="question">
            <Text text={question.message} />
          </p>
          {question.url && isServerSignIn(question.url) ? (
            <SignInToServer path={question.url} />
          ) : question.url ? (
            <p className="quiet">
              It asks you to open this address, which is shown and not followed: <code><Text text={question.url} /></code>
            </p>
          ) : null}
          <SchemaForm
            fields={fieldsOf(question.schema)}
            texts={texts[question.key] ?? {}}
            errors={errors[question.key] ?? {}}
            onChange={(name, text) => setTexts((before) => ({ ...before, [question.key]: { ...before[question.key], [name]: text } }))}
          />
        </div>
      ))}
      <div className="row">
        <Button type="submit" tone="accent" busy={send.busy} why={why}>
          Answer
        </Button>
        <Button tone="quiet" busy={send.busy} why={why} onClick={() => void send.run(true)}>
          I do not want to say
        </Button>
      </div>
      <ProblemNote error={send.error} />
    </form>
  );
}
