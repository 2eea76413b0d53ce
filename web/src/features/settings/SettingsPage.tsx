import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { get } from "../../api/client";
import { useWhoami } from "../../api/queries";
import { keepToken } from "../../api/session";
import { Button } from "../../ui/Button";
import { ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";
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
              <dd>{who.data.assurance === "web_sign_in" ? "the link of the terminal" : "a token"}</dd>
            </div>
          </dl>
        ) : null}
        <div>
          <Button onClick={() => keepToken(null)}>Sign out</Button>
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
              <a href="/docs">its documentation</a>
            </dd>
          </div>
          <div>
            <dt>page</dt>
            <dd>
              <a href="/ui/licenses.md">licences of what it is made of</a>
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
