import { useEffect, useRef, useState, type ReactNode } from "react";
import { request } from "../../api/client";
import { keepToken, sessionEnded } from "../../api/session";
import type { Whoami } from "../../api/types";
import { signInCode } from "../../model/route";
import { Button } from "../../ui/Button";
import { useAction } from "../../ui/hooks";
import { ProblemNote } from "../../ui/States";

/** Signs in by the link of the terminal, or by a token. */
export function SignInPage(): ReactNode {
  const [token, setToken] = useState("");
  const spent = useRef(false);
  const byCode = useAction(async (code: string) => {
    const session = await request<{ token: string }>("/sign-in", { method: "POST", body: { code } });
    keepToken(session.body.token);
  });
  const byToken = useAction(async (given: string) => {
    await request<Whoami>("/whoami", { token: given });
    keepToken(given);
  });
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
        <code>planwright token create --role approver --kind person --name YOU</code>. It stays in this tab until you sign out or close it.
      </p>
    </main>
  );
}
