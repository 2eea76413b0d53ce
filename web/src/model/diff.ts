// Two texts compared by their lines, beside each other or below each other.
import type { DiffLine } from "../api/types";

/** One line of both sides; `null` where a side has no line. A gap stands for lines that are left out. */
export type DiffRow = { kind: "gap" } | { kind: "line"; left: DiffLine | null; right: DiffLine | null };

/** Puts what was removed beside what took its place. */
export function besideEachOther(lines: DiffLine[]): DiffRow[] {
  const rows: DiffRow[] = [];
  let removed: DiffLine[] = [];
  let added: DiffLine[] = [];
  const flush = () => {
    for (let index = 0; index < Math.max(removed.length, added.length); index += 1) {
      rows.push({ kind: "line", left: removed[index] ?? null, right: added[index] ?? null });
    }
    removed = [];
    added = [];
  };
  for (const line of lines) {
    switch (line.sign) {
      case "removed":
        // What is removed after something was added belongs to the next change.
        if (added.length > 0) flush();
        removed.push(line);
        break;
      case "added":
        added.push(line);
        break;
      case "same":
        flush();
        rows.push({ kind: "line", left: line, right: line });
        break;
      case "gap":
        flush();
        rows.push({ kind: "gap" });
        break;
    }
  }
  flush();
  return rows;
}

export function countChanges(lines: DiffLine[]): { added: number; removed: number } {
  const of = (sign: DiffLine["sign"]) => lines.filter((line) => line.sign === sign).length;
  return { added: of("added"), removed: of("removed") };
}

/** Lines around a change that are shown with it. */
const CONTEXT = 3;
/** The table of a comparison has so many cells at most; beyond that, everything between both ends counts as replaced. */
const MOST_CELLS = 1_000_000;

/** Compares two texts line by line. */
export function compareLines(before: string, after: string): DiffLine[] {
  const old = before.split("\n");
  const now = after.split("\n");
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const lines: DiffLine[] = old.slice(0, start).map(same);
  lines.push(...compareMiddle(old.slice(start, old.length - end), now.slice(start, now.length - end)));
  lines.push(...old.slice(old.length - end).map(same));
  return leaveOut(lines);
}

function same(text: string): DiffLine {
  return { sign: "same", text };
}

function compareMiddle(old: string[], now: string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ sign: "removed", text });
  const added = (text: string): DiffLine => ({ sign: "added", text });
  if (old.length * now.length > MOST_CELLS) return [...old.map(removed), ...now.map(added)];
  // lengths[i][j]: the longest list of lines that the rests of both have in common.
  const width = now.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = old[i] === now[j] ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0);
    }
  }
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    const left = old[i];
    const right = now[j];
    if (left !== undefined && left === right) {
      lines.push(same(left));
      i += 1;
      j += 1;
    } else if (left !== undefined && (right === undefined || (lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0))) {
      lines.push(removed(left));
      i += 1;
    } else if (right !== undefined) {
      lines.push(added(right));
      j += 1;
    }
  }
  return lines;
}

/** Leaves out what is the same far from a change. */
function leaveOut(lines: DiffLine[]): DiffLine[] {
  const near = new Set<number>();
  lines.forEach((line, index) => {
    if (line.sign === "same") return;
    for (let other = index - CONTEXT; other <= index + CONTEXT; other += 1) near.add(other);
  });
  const kept: DiffLine[] = [];
  lines.forEach((line, index) => {
    if (near.has(index)) kept.push(line);
    else if (kept.at(-1)?.sign !== "gap") kept.push({ sign: "gap", text: "" });
  });
  return kept;
}

/** The lines of a patch, if a text is one. */
export function linesOfPatch(text: string): DiffLine[] | null {
  if (!/^(diff --git |--- )/m.test(text) || !/^@@ /m.test(text)) return null;
  return text.split("\n").map((line): DiffLine => {
    if (/^(diff |index |--- |\+\+\+ |@@ )/.test(line)) return { sign: "gap", text: line };
    if (line.startsWith("+")) return { sign: "added", text: line.slice(1) };
    if (line.startsWith("-")) return { sign: "removed", text: line.slice(1) };
    return { sign: "same", text: line.slice(1) };
  });
}
