// Where the service is shown: at the root of its host, or below a path of a proxy in front of it.

/** The path before that of the page's own scripts, which are below `/ui/assets`. */
export function baseOf(script: string): string {
  return /^(.*)\/ui\/assets\//.exec(new URL(script).pathname)?.[1] ?? "";
}

export const BASE = baseOf(import.meta.url);

/** Takes the base off a path. */
export function withoutBase(path: string, base = BASE): string {
  return base !== "" && path.startsWith(`${base}/`) ? path.slice(base.length) : path;
}
