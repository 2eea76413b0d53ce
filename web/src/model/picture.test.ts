import { expect, it } from "vitest";
import { kindOf, picturesOf } from "./picture";

const digest = `sha256:${"a".repeat(64)}`;

it("pictures are found in what a tool returned", () => {
  const image = { type: "image", mimeType: "image/png", artifact: digest, bytes: 70 };
  expect(picturesOf({ content: [{ type: "text", text: "look" }, image] })).toEqual([{ digest, bytes: 70 }]);
  for (const other of [null, "text", [image], { content: image }, { content: [{ ...image, type: "audio" }] }, { content: [{ ...image, artifact: "../../secret" }] }, { content: [{ ...image, bytes: 1e9 }] }]) expect(picturesOf(other)).toEqual([]);
});

it("bytes say themselves what they are", () => {
  expect(kindOf(Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d))).toBe("image/png");
  expect(kindOf(Uint8Array.of(0xff, 0xd8, 0xff, 0xe0))).toBe("image/jpeg");
  expect(kindOf(new TextEncoder().encode("GIF89a"))).toBe("image/gif");
  expect(kindOf(new TextEncoder().encode("RIFF....WEBPVP8 "))).toBe("image/webp");
  for (const other of ["<svg xmlns", "RIFF....WAVE", "", "%PDF"]) expect(kindOf(new TextEncoder().encode(other))).toBeNull();
});
