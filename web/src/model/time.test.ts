import { expect, it } from "vitest";
import { ago, duration, until } from "./time";

it("says how long in the unit that counts", () => {
  expect([3, 950, 1_000, 9_940, 41_000, 125_000, 3_600_000, 200_000_000].map(duration)).toEqual(["3 ms", "0.9 s", "1.0 s", "9.9 s", "41 s", "2 m 05 s", "1 h 00 m", "2 d"]);
  expect(duration(Number.NaN)).toBe("–");
});

it("says when", () => {
  const now = Date.parse("2026-01-01T12:00:00Z");
  expect(ago("2026-01-01T11:59:55Z", now)).toBe("just now");
  expect(ago("2026-01-01T11:56:00Z", now)).toBe("4 min ago");
  expect(until("2026-01-01T12:56:00Z", now)).toBe("in 56 min");
  expect(until("2026-01-01T11:56:00Z", now)).toBe("over");
  expect(ago("nonsense", now)).toBe("");
});
