import { useSyncExternalStore, type MouseEvent, type ReactNode } from "react";
import { BASE, withoutBase } from "../api/base";
import { parseRoute, pathOf, type Route } from "../model/route";

function subscribe(listener: () => void): () => void {
  window.addEventListener("popstate", listener);
  window.addEventListener("planwright:navigate", listener);
  return () => {
    window.removeEventListener("popstate", listener);
    window.removeEventListener("planwright:navigate", listener);
  };
}

export function useRoute(): Route {
  const address = useSyncExternalStore(subscribe, () => window.location.pathname + window.location.hash);
  const [path = "/", hash] = address.split("#");
  return parseRoute(withoutBase(path), hash === undefined ? "" : `#${hash}`);
}

export function navigate(route: Route, replace = false): void {
  const path = BASE + pathOf(route);
  if (replace) window.history.replaceState(null, "", path);
  else window.history.pushState(null, "", path);
  window.dispatchEvent(new Event("planwright:navigate"));
  if (!replace) window.scrollTo(0, 0);
}

/** A link inside the page; it opens in another tab like any link. */
export function Link({ to, children, className, current }: { to: Route; children: ReactNode; className?: string; current?: boolean }): ReactNode {
  const follow = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={BASE + pathOf(to)} onClick={follow} className={className} aria-current={current ? "page" : undefined}>
      {children}
    </a>
  );
}
