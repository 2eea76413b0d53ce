// A list of alike objects is read best as a table.
import type { Json } from "../api/types";

export type Table = { columns: string[]; rows: string[][] };

const MOST_COLUMNS = 8;
const MOST_ROWS = 200;

/** The value as a table, if it is a list of flat objects of a size that a table shows well. */
export function tableOf(value: Json): Table | null {
  if (!Array.isArray(value) || value.length === 0 || value.length > MOST_ROWS) return null;
  const columns = new Set<string>();
  for (const row of value) {
    if (typeof row !== "object" || row === null || Array.isArray(row)) return null;
    for (const [name, cell] of Object.entries(row)) {
      if (typeof cell === "object" && cell !== null) return null;
      columns.add(name);
    }
  }
  if (columns.size === 0 || columns.size > MOST_COLUMNS) return null;
  const names = [...columns];
  const rows = value.map((row) => names.map((name) => cellOf((row as { [key: string]: Json })[name])));
  return { columns: names, rows };
}

function cellOf(value: Json | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
