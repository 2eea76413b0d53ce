import type { ReactNode } from "react";

export default function Page(_props: object): ReactNode {
  return <p>soon</p>;
}
