import type { ReactNode } from "react";

type Props = {
  children: ReactNode;
  onClick?: () => void;
  busy?: boolean;
  disabled?: boolean;
  /** Why it cannot be pressed, said beside the pointer and to screen readers. */
  why?: string | null;
  keyHint?: string;
  tone?: "plain" | "accent" | "danger" | "quiet";
  type?: "button" | "submit";
  label?: string;
  /** Says of a button that opens something whether it is open. */
  expanded?: boolean;
};

/** Every button has a word, perhaps a key, and says while it works. */
export function Button(props: Props): ReactNode {
  const { children, onClick, busy = false, disabled = false, why, keyHint, tone = "plain", type = "button", label, expanded } = props;
  return (
    <button
      type={type}
      className={`button ${tone}`}
      disabled={disabled || busy || Boolean(why)}
      title={why ?? undefined}
      aria-busy={busy}
      aria-label={label}
      aria-expanded={expanded}
      onClick={onClick}
    >
      {busy ? <span className="spinner" aria-hidden="true" /> : null}
      {children}
      {keyHint ? <kbd aria-hidden="true">{keyHint}</kbd> : null}
    </button>
  );
}
