// Who is signed in. The token stays in this tab: it is never in an address, a cookie or another tab's storage.
const KEY = "planwright.token";

let listeners: (() => void)[] = [];
let memory: string | null = null;

function storage(): Storage | null {
  try {
    return window.sessionStorage;
  } catch {
    return null;
  }
}

export function readToken(): string | null {
  return storage()?.getItem(KEY) ?? memory;
}

export function keepToken(token: string | null): void {
  memory = token;
  if (token !== null) ended = false;
  if (token === null) storage()?.removeItem(KEY);
  else storage()?.setItem(KEY, token);
  for (const listener of listeners) listener();
}

let ended = false;

/** The service knows the token no longer. */
export function endSession(): void {
  ended = true;
  keepToken(null);
}

/** Says whether the last session ended without a sign-out. */
export function sessionEnded(): boolean {
  return ended;
}

export function onTokenChange(listener: () => void): () => void {
  listeners.push(listener);
  return () => {
    listeners = listeners.filter((other) => other !== listener);
  };
}
