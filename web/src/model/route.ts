// The addresses of the pages. Everything but the inbox is below `/ui`, where the service has no routes of its own.

export type Route =
  | { page: "inbox" }
  | { page: "plans" }
  | { page: "new" }
  | { page: "review"; plan: string; edit?: string }
  | { page: "run"; plan: string; run: string; step?: string }
  | { page: "tools" }
  | { page: "stats" }
  | { page: "workers" }
  | { page: "chat" }
  | { page: "settings" }
  | { page: "missing"; path: string };

export function parseRoute(path: string, hash = ""): Route {
  const parts = path.split("/").filter((part) => part !== "");
  if (parts.length === 0) return { page: "inbox" };
  if (parts[0] !== "ui") return { page: "missing", path };
  const [, page, plan, runs, run, ...more] = parts.map(decode);
  if (more.length > 0) return { page: "missing", path };
  if (plan === undefined) {
    switch (page) {
      case undefined:
      case "inbox":
        return { page: "inbox" };
      case "plans":
      case "new":
      case "tools":
      case "stats":
      case "workers":
      case "chat":
      case "settings":
        return { page };
      default:
        return { page: "missing", path };
    }
  }
  if (page !== "plans" || plan === "") return { page: "missing", path };
  if (runs === undefined) {
    const edit = hash.startsWith("#edit=") ? decode(hash.slice("#edit=".length)) : undefined;
    return { page: "review", plan, ...(edit ? { edit } : {}) };
  }
  if (runs !== "runs" || run === undefined) return { page: "missing", path };
  const step = hash.startsWith("#step=") ? decode(hash.slice("#step=".length)) : undefined;
  return { page: "run", plan, run, ...(step ? { step } : {}) };
}

export function pathOf(route: Route): string {
  switch (route.page) {
    case "inbox":
      return "/";
    case "review":
      return `/ui/plans/${encodeURIComponent(route.plan)}${route.edit ? `#edit=${encodeURIComponent(route.edit)}` : ""}`;
    case "run": {
      const step = route.step ? `#step=${encodeURIComponent(route.step)}` : "";
      return `/ui/plans/${encodeURIComponent(route.plan)}/runs/${encodeURIComponent(route.run)}${step}`;
    }
    case "missing":
      return route.path;
    default:
      return `/ui/${route.page}`;
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const NOT_SIGNED_IN: Record<string, string> = {
  "no-name": "your organisation told no name that can be used here",
  unverified: "your organisation has not verified your address",
  domain: "addresses of your domain are not let in here",
  "no-role": "you are known to your organisation, and have no role here: ask an admin",
  expired: "it took too long, or began in another browser: try again",
  refused: "your organisation did not recognise you",
  unavailable: "your organisation's sign-in does not answer: try again later",
};

/** Why the identity provider's word was not enough. The address holds a word of ours, and never a text of another. */
export function notSignedIn(hash: string): string | null {
  const found = /^#not-signed-in=([a-z-]{1,20})$/.exec(hash);
  return found?.[1] === undefined ? null : (NOT_SIGNED_IN[found[1]] ?? NOT_SIGNED_IN["refused"] ?? null);
}

/** The sign-in code of an address that `planwright serve` printed. */
export function signInCode(hash: string): string | null {
  const found = /^#sign-in=([A-Za-z0-9_-]{8,200})$/.exec(hash);
  return found?.[1] ?? null;
}
