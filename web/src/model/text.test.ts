import { describe, expect, it } from "vitest";
import { cutMiddle, shortDigest, visible, visibleParts } from "./text";

describe("text by others", () => {
  it("is shown as it is when all of it can be seen", () => {
    for (const text of ["plain", "line one\nline two\tend", "Grüße, 日本語, 👍", "<b>&amp;</b>"]) {
      expect(visibleParts(text)).toEqual([{ text, hidden: false }]);
    }
  });

  it("has what turns its direction or hides spelt out", () => {
    expect(visible("a\u202egnp.exe")).toBe("a‹U+202E›gnp.exe");
    expect(visible("pay\u200bpal")).toBe("pay‹U+200B›pal");
    expect(visible("\u001b[31mred")).toBe("‹U+001B›[31mred");
    expect(visible("a\u{e0041}b")).toBe("a‹U+E0041›b");
    expect(visible("a\u0000b\rc")).toBe("a‹U+0000›b‹U+000D›c");
    expect(visible("half\ud800")).toBe("half‹U+D800›");
  });

  it("names every control, bidi, zero-width and tag character", () => {
    const hidden = [0x1b, 0x7f, 0x9b, 0xad, 0x61c, 0x200b, 0x200e, 0x202a, 0x202e, 0x2028, 0x2060, 0x2066, 0x2069, 0xfeff, 0x3164, 0xe0001, 0xe007f];
    for (const code of hidden) expect(visibleParts(String.fromCodePoint(code))).toEqual([{ text: expect.stringMatching(/^‹U\+/), hidden: true }]);
  });

  it("is cut in its middle, with what is missing counted", () => {
    expect(cutMiddle("short", 10)).toBeNull();
    const cut = cutMiddle("a".repeat(50) + "b".repeat(50), 20);
    expect(cut).toEqual({ head: "a".repeat(10), left: 80, tail: "b".repeat(10) });
    const emoji = cutMiddle("👍".repeat(20), 10);
    expect(emoji?.head).toBe("👍👍");
  });

  it("has digests that can be compared by eye", () => {
    expect(shortDigest(`sha256:${"1b46dd90".repeat(8)}`)).toBe("sha256:1b46dd90…");
    expect(shortDigest("something else")).toBe("something else");
  });
});
