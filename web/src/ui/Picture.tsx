// A picture that a tool returned. Its bytes are read as every other value is, and drawn only if they are those of a picture.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type ReactNode } from "react";
import { readBytes } from "../api/client";
import { kindOf } from "../model/picture";
import { ProblemNote } from "./States";

export function Picture({ path, label }: { path: string; label: string }): ReactNode {
  const bytes = useQuery({ queryKey: ["picture", path], queryFn: ({ signal }) => readBytes(path, signal), staleTime: Infinity, gcTime: 60_000 });
  const [address, setAddress] = useState<string | null>(null);
  const kind = bytes.data ? kindOf(bytes.data) : null;
  useEffect(() => {
    if (!bytes.data || kind === null) return;
    const made = URL.createObjectURL(new Blob([bytes.data], { type: kind }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes.data, kind]);
  if (bytes.error) return <ProblemNote error={bytes.error} />;
  if (bytes.data && kind === null) return <p className="quiet">This is no picture that can be shown.</p>;
  return address === null ? null : <img className="picture" src={address} alt={label} />;
}
