import { useEffect, useRef, useState, type ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { BASE } from "../../api/base";
import { get, signIn } from "../../api/client";
import { sessionEnded } from "../../api/session";
import { notSignedIn, signInCode } from "../../model/route";
import { Button } from "../../ui/Button";
import { useAction } from "../../ui/hooks";
import { ProblemNote } from "../../ui/States";

export const SIGN_IN_KEY = "sign-in";

/** Signs in by the link of the terminal, or by a token. */
export function SignInPage(): ReactNode {
  const [token, setToken] = useState("");
  const spent = useRef(false);
  const [refused] = useState(() => notSignedIn(window.location.hash));
  const ways = useQuery({ queryKey: [SIGN_IN_KEY], queryFn: () => get<{ oidc?: string }>("/sign-in"), staleTime: Infinity });
  const byCode = useAction((code: string) => signIn({ code }));
  const byToken = useAction((given: string) => signIn({ token: given }));
  useEffect(() => {
    const code = signInCode(window.location.hash);
    if (code === null || spent.current) return;
    spent.current = true;
    // The code is good once: it is neither kept in the history nor sent anywhere else.
    window.history.replaceState(null, "", window.location.pathname);
    void byCode.run(code);
  });
  return (
    <main className="sign-in">
      <h1>Planwright</h1>
      <p>Plans that agents propose, and people approve.</p>
      {sessionEnded() && !byCode.busy ? <p role="status">Your session has ended: sign in again.</p> : null}
      {byCode.busy ? <p role="status">Signing in …</p> : null}
      <ProblemNote error={byCode.error} />
      {refused !== null && !byCode.busy ? <p role="alert">You are not signed in: {refused}.</p> : null}
      {ways.data?.oidc ? (
        <p>
          <a className="button accent" href={`${BASE}/sign-in/oidc`}>
            {ways.data.oidc}
          </a>
        </p>
      ) : null}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void byToken.run(token.trim());
        }}
      >
        <label htmlFor="token">Your token</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          spellCheck={false}
          placeholder="pwt_…"
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
        <Button type="submit" tone="accent" busy={byToken.busy} disabled={token.trim() === ""}>
          Sign in
        </Button>
        <ProblemNote error={byToken.error} />
      </form>
      <p className="quiet">
        Or open the link that <code>planwright serve</code> prints on its terminal. A token comes from{" "}
        <code>planwright token create --role approver --kind person --name YOU</code>. It is not kept in this browser: a session of 12 hours is, which is renewed while you use it.
      </p>
    </main>
  );
}
