// The passkeys of the person who is signed in.
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { addPasskey, readPasskeys, removePasskey, whyNoPasskeys } from "../../api/passkeys";
import { queryClient } from "../../api/queries";
import { Button } from "../../ui/Button";
import { useAction } from "../../ui/hooks";
import { ProblemNote } from "../../ui/States";
import { Text } from "../../ui/Text";

const day = (at: string): string => new Date(at).toLocaleDateString();

export function Passkeys(): ReactNode {
  const known = useQuery({ queryKey: ["passkeys"], queryFn: ({ signal }) => readPasskeys(signal) });
  const [label, setLabel] = useState("");
  const readAgain = () => queryClient.invalidateQueries();
  const add = useAction(async () => {
    await addPasskey(label.trim());
    setLabel("");
    await readAgain();
  });
  const remove = useAction(async (id: string) => {
    await removePasskey(id);
    await readAgain();
  });
  const impossible = whyNoPasskeys();
  const list = known.data?.passkeys ?? [];
  return (
    <section className="panel stack" aria-labelledby="passkeys">
      <h2 id="passkeys">Passkeys</h2>
      <p className="quiet">
        A passkey is a key in a device of yours, which asks for your finger, your face or a PIN. The operator can want one for approvals that matter.
      </p>
      <ProblemNote error={known.error} />
      {list.length > 0 ? (
        <ul className="plain">
          {list.map((passkey) => (
            <li key={passkey.id}>
              <b>
                <Text text={passkey.label} />
              </b>{" "}
              <span className="quiet">
                since {day(passkey.createdAt)}, {passkey.usedAt === undefined ? "never used" : `used ${day(passkey.usedAt)}`}
              </span>{" "}
              <Button tone="quiet" busy={remove.busy} label={`Remove ${passkey.label}`} onClick={() => void remove.run(passkey.id)}>
                Remove
              </Button>
            </li>
          ))}
        </ul>
      ) : null}
      <ProblemNote error={remove.error} />
      {impossible !== null ? (
        <p>{impossible}</p>
      ) : (
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            void add.run();
          }}
        >
          <label htmlFor="passkey-label">What you call it</label>
          <input id="passkey-label" autoComplete="off" maxLength={60} placeholder="My phone" value={label} onChange={(event) => setLabel(event.target.value)} />
          <div>
            <Button type="submit" busy={add.busy} disabled={label.trim() === ""}>
              Make a passkey
            </Button>
          </div>
          <ProblemNote error={add.error} />
        </form>
      )}
    </section>
  );
}
