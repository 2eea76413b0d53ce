// The only ways in which text by others reaches the screen: as text, with what is hidden in it spelt out.
import { useState, type ReactNode } from "react";
import type { Json } from "../api/types";
import { cutMiddle, shortDigest, visibleParts } from "../model/text";

/** A text by a plan, a tool, a model or a person. */
export function Text({ text }: { text: string }): ReactNode {
  const parts = visibleParts(text);
  if (parts.length === 1 && parts[0]?.hidden === false) return text;
  return parts.map((part, index) =>
    part.hidden ? (
      <span key={index} className="hidden-character" title="a character that cannot be seen">
        {part.text}
      </span>
    ) : (
      part.text
    ),
  );
}

/** Words of an author, marked as theirs. */
export function Quote({ text }: { text: string }): ReactNode {
  return (
    <q className="quote">
      <Text text={text} />
    </q>
  );
}

const CUT_AT = 4_000;

/** A long text, cut in its middle until it is asked for whole. */
export function LongText({ text, onWhole }: { text: string; onWhole?: () => void }): ReactNode {
  const [whole, setWhole] = useState(false);
  const cut = whole ? null : cutMiddle(text, CUT_AT);
  if (cut === null) return <pre className="value">{text === "" ? <i>empty text</i> : <Text text={text} />}</pre>;
  const show = () => {
    setWhole(true);
    onWhole?.();
  };
  return (
    <div>
      <pre className="value">
        <Text text={cut.head} />
      </pre>
      <button type="button" className="cut" onClick={show}>
        {cut.left.toLocaleString("en")} {cut.left === 1 ? "character is" : "characters are"} left out here. Show all
      </button>
      <pre className="value">
        <Text text={cut.tail} />
      </pre>
    </div>
  );
}

/** Says whether a value is shown whole from the beginning. */
export function isShownWhole(value: Json): boolean {
  return textOfValue(value).length <= CUT_AT;
}

function textOfValue(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** Any JSON value: a text as it is, everything else as indented JSON. */
export function Value({ value, onWhole }: { value: Json; onWhole?: () => void }): ReactNode {
  return <LongText text={textOfValue(value)} {...(onWhole ? { onWhole } : {})} />;
}

/** The arguments of a call, one by one. */
export function Arguments({ args, leaveOut, onWhole }: { args: Json; leaveOut?: string; onWhole?: () => void }): ReactNode {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return <Value value={args} {...(onWhole ? { onWhole } : {})} />;
  const entries = Object.entries(args).filter(([name]) => name !== leaveOut);
  if (entries.length === 0 && leaveOut === undefined) return <p className="quiet">no arguments</p>;
  return (
    <dl className="arguments">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>
            <Text text={name} />
          </dt>
          <dd>
            <Value value={value} {...(onWhole ? { onWhole } : {})} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

export function Digest({ digest }: { digest: string }): ReactNode {
  return (
    <code className="digest" title={digest}>
      {shortDigest(digest)}
    </code>
  );
}
