// Forms from JSON Schema: a field for each argument that can be edited as such, JSON for the rest.
import type { Json, JsonObject } from "../api/types";

export type FieldKind = "text" | "long" | "number" | "integer" | "boolean" | "choice" | "json";

export type Field = {
  name: string;
  kind: FieldKind;
  label: string;
  help: string | null;
  required: boolean;
  choices: Json[];
  minimum: number | null;
  maximum: number | null;
};

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The fields of an object, those of the schema first, then what the value has beyond it. */
export function fieldsOf(schema: Json | undefined, value: JsonObject = {}): Field[] {
  const properties = isObject(schema) && isObject(schema["properties"]) ? schema["properties"] : {};
  const required = isObject(schema) && Array.isArray(schema["required"]) ? schema["required"] : [];
  const names = [...new Set([...Object.keys(properties), ...Object.keys(value)])];
  return names.map((name) => fieldOf(name, properties[name], value[name], required.includes(name)));
}

function fieldOf(name: string, schema: Json | undefined, value: Json | undefined, required: boolean): Field {
  const of = isObject(schema) ? schema : {};
  const choices = Array.isArray(of["enum"]) ? of["enum"] : "const" in of ? [of["const"] as Json] : [];
  const text = (key: string) => (typeof of[key] === "string" ? of[key] : null);
  const number = (key: string) => (typeof of[key] === "number" ? of[key] : null);
  return {
    name,
    kind: kindOf(of, choices, value),
    label: text("title") ?? name,
    help: text("description"),
    required,
    choices,
    minimum: number("minimum"),
    maximum: number("maximum"),
  };
}

function kindOf(schema: JsonObject, choices: Json[], value: Json | undefined): FieldKind {
  // A reference stands for a value of any type, and is edited as the text it is.
  if (typeof value === "string" && /\$\{[^}]*\}/.test(value)) return isLong(value) ? "long" : "text";
  if (choices.length > 0) return "choice";
  const types = Array.isArray(schema["type"]) ? schema["type"].filter((type) => type !== "null") : [schema["type"]];
  if (types.length === 1) {
    switch (types[0]) {
      case "string":
        return isLong(value) ? "long" : "text";
      case "integer":
        return "integer";
      case "number":
        return "number";
      case "boolean":
        return "boolean";
    }
  }
  // Without a type a text that is there is edited as text.
  if (types[0] === undefined && typeof value === "string") return isLong(value) ? "long" : "text";
  return "json";
}

function isLong(value: Json | undefined): boolean {
  return typeof value === "string" && (value.includes("\n") || value.length > 60);
}

/** A value as the text of its field; absent is empty. */
export function textOf(field: Field, value: Json | undefined): string {
  if (value === undefined) return "";
  switch (field.kind) {
    case "text":
    case "long":
      return typeof value === "string" ? value : JSON.stringify(value);
    case "choice":
    case "boolean":
      return JSON.stringify(value);
    case "number":
    case "integer":
      return String(value);
    case "json":
      return JSON.stringify(value, null, 2);
  }
}

export type Parsed = { ok: true; value: Json | undefined } | { ok: false; error: string };

/** Reads the text of a field. Empty means absent, except for a text that was there. */
export function parseField(field: Field, text: string): Parsed {
  if (text === "" && !(field.required && (field.kind === "text" || field.kind === "long"))) {
    return field.required ? { ok: false, error: `${field.label} is needed` } : { ok: true, value: undefined };
  }
  switch (field.kind) {
    case "text":
    case "long":
      return { ok: true, value: text };
    case "number":
    case "integer":
      return parseNumber(field, text);
    case "choice":
    case "boolean":
    case "json":
      return parseJson(field, text);
  }
}

function parseNumber(field: Field, text: string): Parsed {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) return { ok: false, error: `${field.label} has to be a number` };
  if (field.kind === "integer" && !Number.isInteger(value)) return { ok: false, error: `${field.label} has to be a whole number` };
  if (field.minimum !== null && value < field.minimum) return { ok: false, error: `${field.label} has to be at least ${field.minimum}` };
  if (field.maximum !== null && value > field.maximum) return { ok: false, error: `${field.label} has to be at most ${field.maximum}` };
  return { ok: true, value };
}

function parseJson(field: Field, text: string): Parsed {
  try {
    return { ok: true, value: JSON.parse(text) as Json };
  } catch {
    return { ok: false, error: `${field.label} has to be JSON: text needs quotes around it` };
  }
}

/** Reads all fields: the object, or what is wrong by name. */
export function parseForm(fields: Field[], texts: Record<string, string>): { value: JsonObject; errors: Record<string, string> } {
  const value: JsonObject = {};
  const errors: Record<string, string> = {};
  for (const field of fields) {
    const parsed = parseField(field, texts[field.name] ?? "");
    if (!parsed.ok) errors[field.name] = parsed.error;
    else if (parsed.value !== undefined) value[field.name] = parsed.value;
  }
  return { value, errors };
}
