// Pictures that tools return: which values hold one, and what its bytes are.
import type { Json } from "../api/types";

export type Picture = { digest: string; bytes: number };

/** Larger pictures are not drawn. */
const LARGEST = 10 * 1024 * 1024;

/** The pictures in what a tool returned. */
export function picturesOf(value: Json): Picture[] {
  if (typeof value !== "object" || value === null || Array.isArray(value) || !Array.isArray(value["content"])) return [];
  return value["content"].flatMap((block) => {
    if (typeof block !== "object" || block === null || Array.isArray(block) || block["type"] !== "image") return [];
    const { artifact, bytes } = block;
    return typeof artifact === "string" && /^sha256:[0-9a-f]{64}$/.test(artifact) && typeof bytes === "number" && bytes <= LARGEST ? [{ digest: artifact, bytes }] : [];
  });
}

const BEGINNINGS: [string, number[]][] = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
];

/** The kind of a picture as its bytes say: what a tool says about it is not believed, and drawings that can hold scripts are none. */
export function kindOf(bytes: Uint8Array): string | null {
  const begins = (signature: number[], from = 0) => signature.every((byte, at) => bytes[from + at] === byte);
  const isWebp = begins([0x52, 0x49, 0x46, 0x46]) && begins([0x57, 0x45, 0x42, 0x50], 8);
  return BEGINNINGS.find(([, beginning]) => begins(beginning))?.[0] ?? (isWebp ? "image/webp" : null);
}
