import { useState, type ReactNode } from "react";
import { planPath, post } from "../../api/client";
import { refreshPlan } from "../../api/queries";
import type { Thread } from "../../api/types";
import { ago } from "../../model/time";
import { Button } from "../../ui/Button";
import { useAction, useNow } from "../../ui/hooks";
import { ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";

export function ThreadView({ plan, thread, mayComment }: { plan: string; thread: Thread; mayComment: boolean }): ReactNode {
  const now = useNow();
  const [replying, setReplying] = useState(false);
  const resolved = thread.state === "resolved";
  const toggle = useAction(async () => {
    await post(planPath(plan, `/comments/${encodeURIComponent(thread.id)}/${resolved ? "reopen" : "resolve"}`), undefined);
    refreshPlan(plan);
  });
  return (
    <section className={resolved ? "thread resolved" : "thread"} aria-label="Comments">
      {thread.comments.map((comment) => (
        <div key={comment.id} className="comment">
          <p className="quiet">
            <b>
              <Text text={comment.by} />
            </b>{" "}
            {ago(comment.at, now)} · version {comment.version}
            {thread.outdated ? " · the step is gone" : ""}
          </p>
          <p className="words">
            <Text text={comment.text} />
          </p>
        </div>
      ))}
      {mayComment ? (
        <div className="row">
          <Button tone="quiet" onClick={() => setReplying(true)} disabled={replying}>
            Reply
          </Button>
          <Button tone="quiet" busy={toggle.busy} onClick={() => void toggle.run()}>
            {resolved ? "Reopen" : "Resolve"}
          </Button>
        </div>
      ) : null}
      <ProblemNote error={toggle.error} />
      {replying ? <CommentBox plan={plan} replyTo={thread.id} onDone={() => setReplying(false)} /> : null}
    </section>
  );
}

/** A comment is words: never a command, a template or an approval. */
export function CommentBox({ plan, step, replyTo, onDone }: { plan: string; step?: string; replyTo?: string; onDone: () => void }): ReactNode {
  const [text, setText] = useState("");
  const send = useAction(async () => {
    await post(planPath(plan, "/comments"), { text, ...(step ? { step } : {}), ...(replyTo ? { replyTo } : {}) });
    refreshPlan(plan);
    onDone();
  });
  return (
    <form
      className="comment-box"
      onSubmit={(event) => {
        event.preventDefault();
        void send.run();
      }}
    >
      <textarea
        aria-label={step ? `Comment on step ${step}` : "Comment"}
        rows={3}
        value={text}
        autoFocus
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onDone();
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && text.trim() !== "") void send.run();
        }}
      />
      <div className="row">
        <Button type="submit" tone="accent" busy={send.busy} disabled={text.trim() === ""} keyHint="Ctrl ↵">
          Send
        </Button>
        <Button tone="quiet" onClick={onDone}>
          Cancel
        </Button>
      </div>
      <ProblemNote error={send.error} />
    </form>
  );
}

/** The discussion of the whole plan. */
export function Discussion({ plan, threads, mayComment }: { plan: string; threads: Thread[]; mayComment: boolean }): ReactNode {
  const [writing, setWriting] = useState(false);
  return (
    <div className="stack">
      {threads.length === 0 && !writing ? <p className="quiet">No comments yet.</p> : null}
      {threads.map((thread) => (
        <div key={thread.id} className="card">
          {thread.step ? (
            <p className="quiet">
              on step <Text text={thread.step} />
            </p>
          ) : null}
          <ThreadView plan={plan} thread={thread} mayComment={mayComment} />
        </div>
      ))}
      {writing ? (
        <CommentBox plan={plan} onDone={() => setWriting(false)} />
      ) : mayComment ? (
        <div>
          <Button onClick={() => setWriting(true)}>Comment on the plan</Button>
        </div>
      ) : null}
    </div>
  );
}
