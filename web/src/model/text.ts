// Text by others: what cannot be seen, or turns the direction of what can, is spelt out.

export type TextPart = { text: string; hidden: boolean };

/** Controls (but not line ends and tabs), bidi marks, zero-width and other invisible characters, tags, unpaired surrogates. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{1d173}-\u{1d17a}]|[\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu;

/** Splits a text into what is shown as it is and what is named instead. */
export function visibleParts(text: string): TextPart[] {
  const parts: TextPart[] = [];
  let end = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > end) parts.push({ text: text.slice(end, found.index), hidden: false });
    parts.push({ text: nameOf(found[0]), hidden: true });
    end = found.index + found[0].length;
  }
  if (end < text.length) parts.push({ text: text.slice(end), hidden: false });
  return parts;
}

/** The same as one text, for places that hold nothing else: titles of the window, labels. */
export function visible(text: string): string {
  return visibleParts(text)
    .map((part) => part.text)
    .join("");
}

function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
}

/** A text that is too long to be shown at once: how it begins, how it ends, and how much is between. */
export type CutText = { head: string; left: number; tail: string };

/** Cuts a long text in its middle; `null` if it fits. */
export function cutMiddle(text: string, limit: number): CutText | null {
  if (text.length <= limit) return null;
  const half = Math.floor(limit / 2);
  const head = whole(text.slice(0, half));
  const tail = text.slice(text.length - half);
  return { head, left: text.length - head.length - tail.length, tail };
}

/** Leaves out half a character at the end. */
function whole(text: string): string {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
}

/** The beginning of a digest, enough to compare by eye. */
export function shortDigest(digest: string): string {
  return digest.replace(/^(sha256:[0-9a-f]{8})[0-9a-f]+$/, "$1…");
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}
