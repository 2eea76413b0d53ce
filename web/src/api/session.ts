// Who is signed in. The session is a cookie that no script can read; what is kept here is its proof, without which the cookie opens
// nothing. Pages of other ports of the same machine are sent the cookie too, and cannot read the proof.
const KEY = "planwright.proof";

let listeners: (() => void)[] = [];
let memory: string | null = null;

function storage(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

/** The proof of the session, if this browser has one. */
export function readProof(): string | null {
  return storage()?.getItem(KEY) ?? memory;
}

export function keepProof(proof: string | null): void {
  memory = proof;
  if (proof !== null) ended = false;
  if (proof === null) storage()?.removeItem(KEY);
  else storage()?.setItem(KEY, proof);
  for (const listener of listeners) listener();
}

/** What a request of the page brings besides the cookie. */
export function proofHeader(): Record<string, string> {
  const proof = readProof();
  return proof === null ? {} : { "planwright-proof": proof };
}

let ended = false;

/** The service knows the session no longer. */
export function endSession(): void {
  ended = true;
  keepProof(null);
}

/** Says whether the last session ended without a sign-out. */
export function sessionEnded(): boolean {
  return ended;
}

export function onSessionChange(listener: () => void): () => void {
  listeners.push(listener);
  // Another tab signed in or out.
  const told = (event: StorageEvent) => {
    if (event.key !== KEY && event.key !== null) return;
    memory = event.newValue;
    listener();
  };
  window.addEventListener("storage", told);
  return () => {
    listeners = listeners.filter((other) => other !== listener);
    window.removeEventListener("storage", told);
  };
}
