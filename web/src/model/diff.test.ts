import { expect, it } from "vitest";
import type { DiffLine } from "../api/types";
import { besideEachOther, compareLines, countChanges, linesOfPatch } from "./diff";

const read = (lines: DiffLine[]) => lines.map(({ sign, text }) => ({ same: " ", added: "+", removed: "-", gap: "…" })[sign] + text);

it("lines that stay, go and come are told apart", () => {
  expect(read(compareLines("a\nb\nc", "a\nB\nc\nd"))).toEqual([" a", "-b", "+B", " c", "+d"]);
  expect(read(compareLines("", "a"))).toEqual(["-", "+a"]);
  expect(compareLines("a\nb", "a\nb").every((line) => line.sign === "gap")).toBe(true);
});

it("what is far from a change is left out", () => {
  const lines = Array.from({ length: 40 }, (_, n) => `line ${n}`);
  const changed = lines.with(20, "another");
  expect(read(compareLines(lines.join("\n"), changed.join("\n")))).toEqual(["…", " line 17", " line 18", " line 19", "-line 20", "+another", " line 21", " line 22", " line 23", "…"]);
});

it("texts that are too long to compare are replaced as a whole", () => {
  const before = Array.from({ length: 1_500 }, (_, n) => `old ${n}`).join("\n");
  const after = Array.from({ length: 1_500 }, (_, n) => `new ${n}`).join("\n");
  expect(countChanges(compareLines(before, after))).toEqual({ added: 1_500, removed: 1_500 });
});

it("what was removed stands beside what took its place", () => {
  const rows = besideEachOther([
    { sign: "same", text: "a" },
    { sign: "removed", text: "b" },
    { sign: "removed", text: "c" },
    { sign: "added", text: "B" },
    { sign: "gap", text: "" },
    { sign: "added", text: "z" },
  ]);
  expect(rows.map((row) => (row.kind === "gap" ? "…" : `${row.left?.text ?? ""}|${row.right?.text ?? ""}`))).toEqual(["a|a", "b|B", "c|", "…", "|z"]);
});

it("a patch is read as one, and other texts are not", () => {
  expect(read(linesOfPatch("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+new") ?? [])).toEqual(["…--- a/x", "…+++ b/x", "…@@ -1,2 +1,2 @@", " same", "-old", "+new"]);
  expect(linesOfPatch("- a list\n- of things")).toBeNull();
});
