import type { ReactNode } from "react";

export default function Page(_props: { plan: string; run: string; step: string | null }): ReactNode {
  return <p>soon</p>;
}
