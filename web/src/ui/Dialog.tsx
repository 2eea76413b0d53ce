import { useEffect, useId, useRef, type ReactNode } from "react";

/** A sheet above the page. Escape closes it; the focus goes back to where it was. */
export function Dialog({ title, onClose, children, wide = false }: { title: string; onClose: () => void; children: ReactNode; wide?: boolean }): ReactNode {
  const sheet = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = sheet.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={sheet}
      className={wide ? "sheet wide" : "sheet"}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === sheet.current) onClose();
      }}
    >
      <div className="sheet-body">
        <header>
          <h2 id={id}>{title}</h2>
          <button type="button" className="button quiet" onClick={onClose} aria-label="Close">
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
