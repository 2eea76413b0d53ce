// Where a passkey is wanted: the button that asks for it.
import type { ReactNode } from "react";
import { confirmWithPasskey, whyNoPasskeys } from "../api/passkeys";
import { queryClient } from "../api/queries";
import { Button } from "./Button";
import { useAction } from "./hooks";
import { Text } from "./Text";

/** Asks for a passkey. What the pages show about what may be done is read again. */
export function UsePasskey({ tone = "plain" }: { tone?: "plain" | "accent" }): ReactNode {
  const confirm = useAction(async () => {
    await confirmWithPasskey();
    await queryClient.invalidateQueries();
  });
  return (
    <>
      <Button tone={tone} busy={confirm.busy} why={whyNoPasskeys()} onClick={() => void confirm.run()}>
        Use your passkey
      </Button>
      {confirm.error instanceof Error ? (
        <span role="alert" className="quiet">
          {" "}
          <Text text={confirm.error.message} />
        </span>
      ) : null}
    </>
  );
}
