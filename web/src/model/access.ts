// What a role lets a person try. The service decides; this only says which buttons make sense.
import type { Whoami } from "../api/types";

export type Act = "approve" | "propose" | "run" | "cancel" | "resolve" | "comment" | "delete" | "administer";

const ROLES: Record<string, Act[]> = {
  viewer: [],
  author: ["propose", "cancel", "comment", "delete"],
  operator: ["run", "cancel", "resolve", "comment"],
  approver: ["approve", "cancel", "comment"],
  admin: ["approve", "propose", "run", "cancel", "resolve", "comment", "delete", "administer"],
};

export function may(who: Whoami | undefined, act: Act): boolean {
  if (who === undefined) return false;
  if (who.kind !== "person" && (act === "approve" || act === "resolve")) return false;
  return ROLES[who.role]?.includes(act) ?? false;
}

/** Why a button is not there to be pressed. */
export function whyNot(who: Whoami | undefined, act: Act): string | null {
  if (who === undefined || may(who, act)) return null;
  if (act === "administer") return `You are signed in as ${who.role}; this needs an admin.`;
  const needed = act === "approve" ? "an approver" : act === "run" || act === "resolve" ? "an operator" : "an author";
  return `You are signed in as ${who.role}; this needs ${needed} or an admin.`;
}
