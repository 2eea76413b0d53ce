// A value as what it is: a table, a patch, by its parts, or as it came.
import { useState, type ReactNode } from "react";
import { get, planPath } from "../../api/client";
import type { Json, LargeValue } from "../../api/types";
import { linesOfPatch } from "../../model/diff";
import { picturesOf } from "../../model/picture";
import { tableOf, type Table } from "../../model/table";
import { Button } from "../../ui/Button";
import { Unified } from "../../ui/Diff";
import { useAction } from "../../ui/hooks";
import { JsonTree } from "../../ui/JsonTree";
import { Picture } from "../../ui/Picture";
import { ProblemNote } from "../../ui/States";
import { isShownWhole, Text, Value } from "../../ui/Text";

/** Values that are longer than this are shown by their parts. */
const TREE_FROM = 400;

/** A value as a table, a patch or by its parts where that reads better, and as it is on request. */
export function Preview({ value, at }: { value: Json; at?: { plan: string; run: string } }): ReactNode {
  const [plain, setPlain] = useState(false);
  const pictures = at ? picturesOf(value) : [];
  if (at && pictures.length > 0 && !plain) {
    return (
      <>
        {pictures.map(({ digest }, index) => (
          <Picture key={digest} path={planPath(at.plan, `/runs/${encodeURIComponent(at.run)}/artifacts/${digest}`)} label={`Picture ${index + 1} of the value`} />
        ))}
        <Button tone="quiet" onClick={() => setPlain(true)}>
          As JSON
        </Button>
      </>
    );
  }
  const shown = plain ? null : previewOf(value);
  if (shown === null) return <Value value={value} />;
  return (
    <>
      {shown}
      <Button tone="quiet" onClick={() => setPlain(true)}>
        {typeof value === "string" ? "As text" : "As JSON"}
      </Button>
    </>
  );
}

function previewOf(value: Json): ReactNode {
  const table = tableOf(value);
  if (table !== null) return <TableView table={table} />;
  if (typeof value === "string") {
    const patch = linesOfPatch(value);
    return patch === null ? null : (
      <figure className="diff">
        <Unified lines={patch} label="Value as a patch" />
      </figure>
    );
  }
  return typeof value === "object" && value !== null && JSON.stringify(value).length > TREE_FROM ? <JsonTree value={value} /> : null;
}

function TableView({ table }: { table: Table }): ReactNode {
  return (
    <div className="table-box" tabIndex={0} role="region" aria-label="Value as a table">
      <table>
        <thead>
          <tr>
            {table.columns.map((name) => (
              <th key={name}>
                <Text text={name} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>
                  <Text text={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A value that is too large for the answer: how it begins, and all of it on request. What has to be read is shown exactly. */
export function Large({ large, name, onWhole }: { large: LargeValue; name: string; onWhole?: () => void }): ReactNode {
  const [value, setValue] = useState<Json | undefined>(undefined);
  const load = useAction(async () => {
    const loaded = await get<Json>(large.href);
    setValue(loaded);
    if (isShownWhole(loaded)) onWhole?.();
  });
  const save = () => {
    const blob = new Blob([typeof value === "string" ? value : JSON.stringify(value, null, 2)], { type: "text/plain" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${name}.txt`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  if (value !== undefined) {
    return (
      <>
        {onWhole ? <Value value={value} onWhole={onWhole} /> : <Preview value={value} />}
        <Button tone="quiet" onClick={save}>
          Download
        </Button>
      </>
    );
  }
  return (
    <>
      {large.preview ? (
        <pre className="value">
          <Text text={large.preview} />…
        </pre>
      ) : null}
      <Button busy={load.busy} onClick={() => void load.run()}>
        Show all {(large.bytes / 1024).toFixed(0)} KB
      </Button>
      <ProblemNote error={load.error} />
    </>
  );
}
