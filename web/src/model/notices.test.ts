import { expect, it } from "vitest";
import { keepOrder, type InboxRow } from "./inbox";
import { noticesOf } from "./notices";

const row = (key: string): InboxRow => ({ key, kind: "approve", word: "Approve", title: `Plan ${key}\u202e`, consequence: "writes a file", who: null, since: "", expiresAt: null, route: { page: "inbox" } });

it("what was there before is not told", () => {
  expect(noticesOf(null, [row("a")])).toEqual([]);
  expect(noticesOf(new Set(["a"]), [row("a")])).toEqual([]);
});

it("what is new is told, with what cannot be seen spelt out", () => {
  expect(noticesOf(new Set(["a"]), [row("a"), row("b")])).toEqual([{ title: "Approve: Plan b‹U+202E›", body: "writes a file", tag: "b" }]);
});

it("many at once are one", () => {
  expect(noticesOf(new Set(), ["a", "b", "c", "d"].map(row))).toEqual([{ title: "Planwright", body: "4 more are waiting for you", tag: "many" }]);
});

it("rows that are shown stay where they are", () => {
  expect(keepOrder([], ["a", "b"].map(row)).map(({ key }) => key)).toEqual(["a", "b"]);
  expect(keepOrder(["a", "b", "gone"], ["new", "b", "a", "newer"].map(row)).map(({ key }) => key)).toEqual(["a", "b", "new", "newer"]);
});
