// Texts compared by their lines: beside each other where there is room, below each other where there is not.
import { useRef, type ReactNode } from "react";
import type { DiffLine, FileChange } from "../api/types";
import { besideEachOther, countChanges } from "../model/diff";
import { useWidth } from "./hooks";
import { Text } from "./Text";

/** From this width on both sides have room for a line. */
const ROOM_PX = 600;

const SIGNS: Record<DiffLine["sign"], string> = { added: "+ ", removed: "- ", same: "  ", gap: "⋯ " };

type Props = { lines: DiffLine[]; label: string; before: string; after: string };

export function LineDiff({ lines, label, before, after }: Props): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const wide = useWidth(box) >= ROOM_PX;
  return (
    <div ref={box} className="diff-box">
      {wide ? <Sides lines={lines} label={label} before={before} after={after} /> : <Unified lines={lines} label={label} />}
    </div>
  );
}

export function Unified({ lines, label }: { lines: DiffLine[]; label: string }): ReactNode {
  return (
    <pre tabIndex={0} aria-label={label} role="group">
      {lines.map((line, index) => (
        <span key={index} className={`line ${line.sign}`}>
          {SIGNS[line.sign]}
          <Text text={line.text} />
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

function Sides({ lines, label, before, after }: Props): ReactNode {
  return (
    <table className="sides" aria-label={label}>
      <thead>
        <tr>
          <th scope="col">{before}</th>
          <th scope="col">{after}</th>
        </tr>
      </thead>
      <tbody>
        {besideEachOther(lines).map((row, index) =>
          row.kind === "gap" ? (
            <tr key={index}>
              <td className="line gap" colSpan={2}>
                ⋯<span className="only-read"> lines that stay are left out</span>
              </td>
            </tr>
          ) : (
            <tr key={index}>
              <Side line={row.left} />
              <Side line={row.right} />
            </tr>
          ),
        )}
      </tbody>
    </table>
  );
}

function Side({ line }: { line: DiffLine | null }): ReactNode {
  if (line === null) return <td className="line none" />;
  return (
    <td className={`line ${line.sign}`}>
      {SIGNS[line.sign]}
      <Text text={line.text} />
    </td>
  );
}

/** What a call does to a file, compared with the file as it is. */
export function FileDiff({ file }: { file: FileChange }): ReactNode {
  const { added, removed } = countChanges(file.diff);
  return (
    <figure className="diff">
      <figcaption>
        <Text text={file.path} />
        {file.resolved ? (
          <>
            {" "}
            → <Text text={file.resolved} />
          </>
        ) : null}{" "}
        {file.diff.length > 0 ? (
          <span>
            <b className="added">+{added}</b> <b className="removed">−{removed}</b>
          </span>
        ) : null}{" "}
        <span className="quiet">
          <Text text={aboutFile(file)} />
        </span>
      </figcaption>
      {file.diff.length > 0 ? <LineDiff lines={file.diff} label={`Changes in ${file.path}`} before="as it is now" after="as it would be" /> : null}
    </figure>
  );
}

function aboutFile(file: FileChange): string {
  if (file.notCompared) return file.notCompared;
  if (file.exists === false) return "the file does not exist yet";
  if (file.exists && file.diff.length === 0) return "the file is like that already";
  return file.exists ? "compared with the file as it is now" : "";
}
