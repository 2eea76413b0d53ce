// Passkeys: what the browser's own dialogs ask for, between the two requests that begin and end each of them.
import { toBytes, toText } from "../model/bytes";
import { get, post, request } from "./client";

export type PasskeyLine = { id: string; label: string; createdAt: string; usedAt?: string };
export type PasskeyList = { passkeys: PasskeyLine[]; confirmedUntil?: string };

type Question = { challenge: string; host: string; userId: string; userName: string; known: string[] };

/** ES256, EdDSA and RS256, as they are numbered. */
const ALGORITHMS = [-7, -8, -257];

export function readPasskeys(signal: AbortSignal): Promise<PasskeyList> {
  return get<PasskeyList>("/passkeys", signal);
}

/** Why this page cannot use passkeys, or `null` if it can. */
export function whyNoPasskeys(): string | null {
  if (typeof window.PublicKeyCredential === "undefined") return "This browser has no passkeys for this address: they need https, or this machine.";
  const { hostname } = window.location;
  if (/^[0-9.]+$/.test(hostname) || hostname.startsWith("[")) return "Passkeys belong to a name: open the page under one, such as localhost, and not under an address of numbers.";
  return null;
}

const named = (ids: string[]): PublicKeyCredentialDescriptor[] => ids.map((id) => ({ type: "public-key", id: toBytes(id) }));

/** What the browser's dialog says when it was closed, in words. */
async function told<Value>(work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotAllowedError") throw new Error("nothing was confirmed: the dialog was closed or took too long");
    if (error instanceof DOMException && error.name === "InvalidStateError") throw new Error("this device has a passkey of yours already");
    throw error;
  }
}

/** Has the device make a passkey, and the service keep it. */
export async function addPasskey(label: string): Promise<void> {
  const question = await post<Question>("/passkeys/challenge", { for: "registration" });
  const made = await told(
    navigator.credentials.create({
      publicKey: {
        challenge: toBytes(question.challenge),
        rp: { id: question.host, name: "Planwright" },
        user: { id: toBytes(question.userId), name: question.userName, displayName: question.userName },
        pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: "public-key", alg })),
        excludeCredentials: named(question.known),
        authenticatorSelection: { userVerification: "required", residentKey: "preferred" },
        attestation: "none",
      },
    }),
  );
  if (!(made instanceof PublicKeyCredential) || !(made.response instanceof AuthenticatorAttestationResponse)) throw new Error("the device made no passkey");
  await post("/passkeys", { label, clientData: toText(made.response.clientDataJSON), attestation: toText(made.response.attestationObject) });
}

/** Has the person use a passkey: what they approve for a while is approved with it. */
export async function confirmWithPasskey(): Promise<void> {
  const question = await post<Question>("/passkeys/challenge", { for: "confirmation" });
  if (question.known.length === 0) throw new Error("you have no passkey yet: Settings makes one");
  const used = await told(
    navigator.credentials.get({
      publicKey: { challenge: toBytes(question.challenge), rpId: question.host, allowCredentials: named(question.known), userVerification: "required" },
    }),
  );
  if (!(used instanceof PublicKeyCredential) || !(used.response instanceof AuthenticatorAssertionResponse)) throw new Error("the device used no passkey");
  const { clientDataJSON, authenticatorData, signature } = used.response;
  await post("/passkeys/confirm", { id: toText(used.rawId), clientData: toText(clientDataJSON), authenticatorData: toText(authenticatorData), signature: toText(signature) });
}

export async function removePasskey(id: string): Promise<void> {
  await request(`/passkeys/${encodeURIComponent(id)}`, { method: "DELETE" });
}
