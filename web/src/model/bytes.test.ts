import { expect, it } from "vitest";
import { toBytes, toText } from "./bytes";

it("bytes come back as they were", () => {
  for (let length = 0; length < 70; length += 1) {
    const bytes = Uint8Array.from({ length }, (_, at) => (at * 37 + length) % 256);
    const text = toText(bytes);
    expect(text).toMatch(/^[A-Za-z0-9_-]*$/);
    expect(toBytes(text)).toEqual(bytes);
  }
  expect(toText(Uint8Array.of(251, 255, 254))).toBe("-__-");
});
