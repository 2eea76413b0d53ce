// Signing in to a server of tools: the service says where, and this browser goes there and back.
import { useState, type ReactNode } from "react";
import { post } from "../api/client";
import type { SignInAddress } from "../api/types";
import { Button } from "./Button";
import { useAction } from "./hooks";
import { ProblemNote } from "./States";

const PATH = /^\/servers\/([A-Za-z0-9_-]{1,64})\/sign-in$/;

/** Whether a question sends people to this service's own sign-in, and nowhere else. */
export function isServerSignIn(url: string): boolean {
  return PATH.test(url);
}

/** A button, and then a link: a page that opened by itself would be held back as a pop-up. */
export function SignInToServer({ path }: { path: string }): ReactNode {
  const [address, setAddress] = useState<string | null>(null);
  const begin = useAction(async () => {
    const found = await post<SignInAddress>(path);
    const url = new URL(found.address);
    if (url.protocol === "https:" || url.protocol === "http:") setAddress(url.href);
  });
  return (
    <div className="row">
      {address === null ? (
        <Button busy={begin.busy} onClick={() => void begin.run()}>
          Sign in to {PATH.exec(path)?.[1] ?? "the server"}
        </Button>
      ) : (
        <a href={address} target="_blank" rel="noopener noreferrer">
          Open the sign-in page
        </a>
      )}
      <ProblemNote error={begin.error} />
    </div>
  );
}
