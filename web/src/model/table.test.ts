import { expect, it } from "vitest";
import { tableOf } from "./table";

it("shows lists of flat objects, with every column that one of them has", () => {
  expect(tableOf([{ name: "a", bytes: 3 }, { name: "b", kind: null }])).toEqual({ columns: ["name", "bytes", "kind"], rows: [["a", "3", ""], ["b", "", "null"]] });
});

it("leaves everything else as JSON", () => {
  for (const value of [[], [1], [{ a: { b: 1 } }], { a: 1 }, "x", null, [{}], [Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`k${n}`, n]))], Array.from({ length: 201 }, () => ({ a: 1 }))]) {
    expect(tableOf(value)).toBeNull();
  }
});
