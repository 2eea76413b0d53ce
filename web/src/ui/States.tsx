// Loading, failed, empty and forbidden are states of every page.
import { useEffect, useState, type ReactNode } from "react";
import { Refusal } from "../api/client";
import { stateWord } from "../model/run";
import { Button } from "./Button";
import { Text } from "./Text";
import { UsePasskey } from "./UsePasskey";

/** Grey lines at once, words after a second. */
export function Loading({ what, lines = 4 }: { what: string; lines?: number }): ReactNode {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 1_000);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="loading" aria-busy="true" role="status" aria-label={`Loading ${what}`}>
      {Array.from({ length: lines }, (_, index) => (
        <div key={index} className="skeleton" />
      ))}
      {slow ? <p className="quiet">Loading {what} …</p> : null}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }): ReactNode {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** What the service said when it refused, where the click was. */
export function ProblemNote({ error, onRetry }: { error: unknown; onRetry?: () => void }): ReactNode {
  if (!error) return null;
  const problem = error instanceof Refusal ? error.problem : null;
  const words = error instanceof Error ? error.message : "something went wrong";
  return (
    <div className="problem" role="alert">
      <p>
        <b>{titleOf(problem?.status)}</b> <Text text={words} />
      </p>
      {problem?.hint ? (
        <p className="quiet">
          <Text text={problem.hint} />
        </p>
      ) : null}
      {problem?.findings && problem.findings.length > 0 ? (
        <ul>
          {problem.findings.map((finding, index) => (
            <li key={index}>
              {finding.step ? (
                <b>
                  <Text text={finding.step} />:{" "}
                </b>
              ) : null}
              <Text text={finding.message} />
              {finding.suggestion ? (
                <span className="quiet">
                  {" "}
                  <Text text={finding.suggestion} />
                </span>
              ) : null}
            </li>
          ))}
        </ul>
      ) : null}
      {problem?.code === "passkey_needed" ? (
        <p>
          <UsePasskey /> <span className="quiet">and then do it again.</span>
        </p>
      ) : null}
      {onRetry ? <Button onClick={onRetry}>Try again</Button> : null}
    </div>
  );
}

function titleOf(status: number | undefined): string {
  switch (status) {
    case 0:
      return "No answer:";
    case 403:
      return "Not allowed:";
    case 404:
      return "Not found:";
    case 409:
      return "Not now:";
    case 412:
      return "Changed meanwhile:";
    case 422:
      return "Not possible:";
    case 429:
    case 503:
      return "Too busy:";
    default:
      return "Refused:";
  }
}

export function State({ state }: { state: string }): ReactNode {
  const { glyph, word, tone } = stateWord(state);
  return (
    <span className={`state ${tone}`}>
      <span aria-hidden="true">{glyph}</span> {word}
    </span>
  );
}
