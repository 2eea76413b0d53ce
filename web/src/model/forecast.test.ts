import { expect, it } from "vitest";
import { forecast } from "./forecast";

it("says what is expected of a run as far as it is known", () => {
  expect(forecast({})).toBeNull();
  expect(forecast({ predictedMs: 4200 })).toBe("about 4.2 s");
  expect(forecast({ predictedMs: 4200, predictedCostUsd: 0.004 })).toBe("about 4.2 s, less than $0.01 for models");
  expect(forecast({ predictedCostUsd: 1.256 })).toBe("about $1.26 for models");
});
