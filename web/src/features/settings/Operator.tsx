// How the service is set up, for those who administer it. It is changed where the service runs.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get } from "../../api/client";
import type { OperatorSettings } from "../../api/types";
import { count } from "../../model/text";
import { SignInToServer } from "../../ui/SignInToServer";
import { Loading, ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";
import { useServerSignIns } from "./ServerSignIns";

const STATES: Record<OperatorSettings["servers"][number]["state"], string> = { connected: "connected", idle: "not needed yet", failed: "failed", not_ready: "not ready" };

export function Operator(): ReactNode {
  const settings = useQuery({ queryKey: ["operator"], queryFn: ({ signal }) => get<OperatorSettings>("/settings/operator", signal), refetchInterval: 30_000 });
  const signIns = useServerSignIns();
  if (settings.isPending) return <Loading what="the settings" lines={3} />;
  if (!settings.data) return <ProblemNote error={settings.error} onRetry={() => void settings.refetch()} />;
  const { servers, webhooks, secrets, policy } = settings.data;
  return (
    <>
      <Section id="operator-servers" title="Servers" empty={servers.length === 0 ? "No file names a server." : null}>
        {servers.map((server) => (
          <li key={server.name}>
            <b>
              <Text text={server.name} />
            </b>{" "}
            {STATES[server.state]}
            {server.tools != null ? `, ${count(server.tools, "tool")}` : ""}
            {server.trusted ? "" : ", not trusted"} <span className="quiet"><Text text={server.source} /></span>
            {server.state === "failed" && signIns.data?.some((known) => known.name === server.name && !known.personal && !known.signedIn) ? <SignInToServer path={`/servers/${server.name}/sign-in`} /> : null}
            {server.problem ? <p className="bad"><Text text={server.problem} /></p> : null}
            {server.log ? (
              <pre className="value">
                <Text text={server.log} />
              </pre>
            ) : null}
          </li>
        ))}
      </Section>
      <Section id="operator-webhooks" title="Webhooks" empty={webhooks.length === 0 ? "No other program is told what happens." : null}>
        {webhooks.map((webhook) => (
          <li key={webhook.name}>
            <b>
              <Text text={webhook.name} />
            </b>{" "}
            <Text text={webhook.url} /> <span className="quiet">{webhook.waiting} waiting, {webhook.dead} given up</span>
            {webhook.disabled ? <p className="bad"><Text text={webhook.disabled} /></p> : null}
            {webhook.lastError ? <p className="quiet"><Text text={webhook.lastError} /></p> : null}
          </li>
        ))}
      </Section>
      <Section id="operator-secrets" title="Secrets" empty={secrets.length === 0 ? "There are none." : null}>
        {secrets.map((secret) => (
          <li key={secret.name}>
            <b>
              <Text text={secret.name} />
            </b>{" "}
            {secret.available ? "can be used" : "cannot be used"} <span className="quiet"><Text text={secret.source} /></span>
            {secret.problem ? <p className="bad"><Text text={secret.problem} /></p> : null}
          </li>
        ))}
      </Section>
      <section className="panel stack" aria-labelledby="operator-policy">
        <h2 id="operator-policy">Policy</h2>
        {policy.trim() === "" ? (
          <p className="quiet">There is none of your own: tools that only read run, everything else is asked about.</p>
        ) : (
          <pre className="value" tabIndex={0} aria-label="The policy in force">
            <Text text={policy} />
          </pre>
        )}
      </section>
    </>
  );
}

function Section({ id, title, empty, children }: { id: string; title: string; empty: string | null; children: ReactNode }): ReactNode {
  return (
    <section className="panel stack" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {empty !== null ? <p className="quiet">{empty}</p> : <ul className="lines">{children}</ul>}
    </section>
  );
}
