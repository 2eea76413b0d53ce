import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { BASE } from "../../api/base";
import { get, post, signOut } from "../../api/client";
import { useWhoami } from "../../api/queries";
import { Button } from "../../ui/Button";
import { useAction } from "../../ui/hooks";
import { turnNoticesOff, turnNoticesOn, useNoticeState, type NoticeState } from "../../ui/notices";
import { ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";
import { Operator } from "./Operator";
import { Passkeys } from "./Passkeys";
import { ServerSignIns } from "./ServerSignIns";
import { applyTheme, readTheme, type Theme } from "../../ui/theme";

const THEMES: { theme: Theme; word: string }[] = [
  { theme: "system", word: "As the system" },
  { theme: "light", word: "Light" },
  { theme: "dark", word: "Dark" },
];

/** What this browser keeps, who is signed in, and how the service is. Everything else is configured where it runs. */
export default function SettingsPage(): ReactNode {
  const who = useWhoami();
  const [theme, setTheme] = useState(readTheme);
  const ready = useQuery({ queryKey: ["readyz"], queryFn: () => get<{ ready: boolean; reasons: string[] }>("/readyz"), refetchInterval: 30_000 });
  const about = useQuery({ queryKey: ["about"], queryFn: () => get<{ info: { version: string } }>("/openapi.json"), staleTime: Infinity });
  return (
    <div className="page narrow">
      <h1>Settings</h1>
      <section className="panel stack" aria-labelledby="you">
        <h2 id="you">You</h2>
        {who.data ? (
          <dl className="facts">
            <div>
              <dt>name</dt>
              <dd>
                <Text text={who.data.name} /> ({who.data.kind})
              </dd>
            </div>
            <div>
              <dt>role</dt>
              <dd>{who.data.role}</dd>
            </div>
            <div>
              <dt>signed in by</dt>
              <dd>{SIGNED_IN_BY[who.data.assurance] ?? "a token"}</dd>
            </div>
          </dl>
        ) : null}
        <div>
          <Button onClick={() => void signOut()}>Sign out</Button>
        </div>
      </section>
      <section className="panel stack" aria-labelledby="look">
        <h2 id="look">Look</h2>
        <fieldset>
          <legend>Theme</legend>
          {THEMES.map((choice) => (
            <label key={choice.theme} className="radio">
              <input
                type="radio"
                name="theme"
                checked={theme === choice.theme}
                onChange={() => {
                  setTheme(choice.theme);
                  applyTheme(choice.theme);
                }}
              />
              {choice.word}
            </label>
          ))}
        </fieldset>
      </section>
      <Notices />
      <Passkeys />
      <ServerSignIns />
      {who.data?.role === "admin" ? <Invitations /> : null}
      {who.data?.role === "admin" ? <Operator /> : null}
      <section className="panel stack" aria-labelledby="service">
        <h2 id="service">Service</h2>
        <ProblemNote error={ready.error} />
        <dl className="facts">
          <div>
            <dt>version</dt>
            <dd>{about.data?.info.version ?? "–"}</dd>
          </div>
          <div>
            <dt>state</dt>
            <dd>{ready.data ? ready.data.ready ? "ready" : <Text text={ready.data.reasons.join("; ")} /> : "–"}</dd>
          </div>
          <div>
            <dt>API</dt>
            <dd>
              <a href={`${BASE}/docs`}>its documentation</a>
            </dd>
          </div>
          <div>
            <dt>page</dt>
            <dd>
              <a href={`${BASE}/ui/licenses.md`}>licences of what it is made of</a>
            </dd>
          </div>
        </dl>
        <p className="quiet">
          Tokens and people: <code>planwright token</code>. Servers: <code>planwright servers</code>. Models: <code>planwright models</code>. Policy: <code>planwright.toml</code>.
        </p>
      </section>
    </div>
  );
}

const SIGNED_IN_BY: Record<string, string> = { web_sign_in: "a link", single_sign_on: "your organisation", passkey: "a passkey, just now" };

const ROLES = ["viewer", "author", "operator", "approver", "admin"];

/** A link that signs another person in, once. */
function Invitations(): ReactNode {
  const [name, setName] = useState("");
  const [role, setRole] = useState("approver");
  const [invited, setInvited] = useState<{ name: string; link: string; expiresAt: string } | null>(null);
  const invite = useAction(async () => {
    setInvited(null);
    const { code, expiresAt } = await post<{ code: string; expiresAt: string }>("/invitations", { name, role });
    setInvited({ name, link: `${window.location.origin}${BASE}/#sign-in=${code}`, expiresAt });
    setName("");
  });
  return (
    <section className="panel stack" aria-labelledby="invite">
      <h2 id="invite">Invite a person</h2>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void invite.run();
        }}
      >
        <label htmlFor="invited-name">Their name</label>
        <input id="invited-name" autoComplete="off" value={name} onChange={(event) => setName(event.target.value)} />
        <label htmlFor="invited-role">Their role</label>
        <select id="invited-role" value={role} onChange={(event) => setRole(event.target.value)}>
          {ROLES.map((word) => (
            <option key={word}>{word}</option>
          ))}
        </select>
        <div>
          <Button type="submit" busy={invite.busy} disabled={name.trim() === ""}>
            Make a link
          </Button>
        </div>
        <ProblemNote error={invite.error} />
      </form>
      {invited ? (
        <>
          <label htmlFor="invited-link">
            Signs <Text text={invited.name} /> in once, until {new Date(invited.expiresAt).toLocaleString()}
          </label>
          <input id="invited-link" readOnly value={invited.link} onFocus={(event) => event.target.select()} />
          <p className="quiet">Who has the link is that person: send it over a channel you trust. It is shown only now.</p>
        </>
      ) : null}
    </section>
  );
}

const NOTICE_WORDS: Record<NoticeState, string> = {
  on: "This browser tells you when something new waits for you while you look elsewhere.",
  off: "This browser can tell you when something new waits for you while you look elsewhere. It asks for your permission first.",
  refused: "This browser does not let the page notify you. Its settings for this site can change that.",
  impossible: "This browser has no notifications for this address: they need https, or this machine.",
};

function Notices(): ReactNode {
  const state = useNoticeState();
  const turnOn = useAction(turnNoticesOn);
  return (
    <section className="panel stack" aria-labelledby="notices">
      <h2 id="notices">Notifications</h2>
      <p>{NOTICE_WORDS[state]}</p>
      <div>
        {state === "off" ? (
          <Button busy={turnOn.busy} onClick={() => void turnOn.run()}>
            Notify me
          </Button>
        ) : null}
        {state === "on" ? <Button onClick={turnNoticesOff}>Do not notify me</Button> : null}
      </div>
      <ProblemNote error={turnOn.error} />
    </section>
  );
}
