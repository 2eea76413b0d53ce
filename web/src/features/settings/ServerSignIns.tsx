// The servers that each person signs in to: runs in their name use what they signed in with.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get, request } from "../../api/client";
import type { ServerSignIn } from "../../api/types";
import { Button } from "../../ui/Button";
import { useAction } from "../../ui/hooks";
import { SignInToServer } from "../../ui/SignInToServer";
import { ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";

export function useServerSignIns() {
  return useQuery({ queryKey: ["server-sign-ins"], queryFn: ({ signal }) => get<ServerSignIn[]>("/servers/sign-ins", signal), refetchInterval: 30_000 });
}

export function ServerSignIns(): ReactNode {
  const signIns = useServerSignIns();
  const signOut = useAction(async (name: string) => {
    await request(`/servers/${name}/sign-in`, { method: "DELETE" });
    await signIns.refetch();
  });
  const own = signIns.data?.filter((server) => server.personal) ?? [];
  if (own.length === 0) return <ProblemNote error={signIns.error} />;
  return (
    <section className="panel stack" aria-labelledby="server-sign-ins">
      <h2 id="server-sign-ins">Your accounts at servers</h2>
      <p className="quiet">Runs in your name use them, and no others do.</p>
      <ul className="lines">
        {own.map((server) => (
          <li key={server.name}>
            <b>
              <Text text={server.name} />
            </b>
            {server.signedIn ? (
              <Button busy={signOut.busy} onClick={() => void signOut.run(server.name)}>
                Sign out of {server.name}
              </Button>
            ) : (
              <SignInToServer path={`/servers/${server.name}/sign-in`} />
            )}
          </li>
        ))}
      </ul>
      <ProblemNote error={signOut.error} />
    </section>
  );
}
