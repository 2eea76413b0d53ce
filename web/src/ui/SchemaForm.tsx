// A form from a JSON schema: for the arguments of a tool, and for what a step asks a person.
import { useId, type ReactNode } from "react";
import type { Field } from "../model/form";
import { visible } from "../model/text";
import { Text } from "./Text";

type Props = { fields: Field[]; texts: Record<string, string>; errors: Record<string, string>; onChange: (name: string, text: string) => void };

export function SchemaForm({ fields, texts, errors, onChange }: Props): ReactNode {
  const prefix = useId();
  return fields.map((field) => {
    const id = `${prefix}-${field.name}`;
    const text = texts[field.name] ?? "";
    const error = errors[field.name];
    const about = [field.help ? `${id}-help` : null, error ? `${id}-error` : null].filter(Boolean).join(" ") || undefined;
    const common = { id, "aria-describedby": about, "aria-invalid": error !== undefined, "aria-required": field.required };
    return (
      <div key={field.name} className="form-field">
        <label htmlFor={id}>
          <Text text={field.label} />
          {field.required ? "" : <span className="quiet"> (optional)</span>}
        </label>
        {control(field, text, common, (value) => onChange(field.name, value))}
        {field.help ? (
          <p id={`${id}-help`} className="quiet">
            <Text text={field.help} />
          </p>
        ) : null}
        {visible(text) !== text ? (
          <p className="bad">
            Some of it cannot be seen: <Text text={text} />
          </p>
        ) : null}
        {error ? (
          <p id={`${id}-error`} className="bad" role="alert">
            <Text text={error} />
          </p>
        ) : null}
      </div>
    );
  });
}

type Common = { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean; "aria-required": boolean };

function control(field: Field, text: string, common: Common, set: (text: string) => void): ReactNode {
  switch (field.kind) {
    case "text":
      return <input {...common} type="text" value={text} onChange={(event) => set(event.target.value)} />;
    case "number":
    case "integer":
      return <input {...common} type="text" inputMode="decimal" value={text} onChange={(event) => set(event.target.value)} />;
    case "long":
    case "json":
      return (
        <textarea
          {...common}
          className="code"
          rows={Math.min(14, Math.max(3, text.split("\n").length + 1))}
          spellCheck={field.kind === "long"}
          value={text}
          onChange={(event) => set(event.target.value)}
        />
      );
    case "boolean":
    case "choice": {
      const choices = field.kind === "boolean" ? [true, false] : field.choices;
      return (
        <select {...common} value={text} onChange={(event) => set(event.target.value)}>
          <option value="">{field.required ? "choose …" : "–"}</option>
          {choices.map((choice) => (
            <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>
              {choice === true ? "yes" : choice === false ? "no" : visible(typeof choice === "string" ? choice : JSON.stringify(choice))}
            </option>
          ))}
        </select>
      );
    }
  }
}
