import { describe, expect, it } from "vitest";
import type { JsonObject } from "../api/types";
import { fieldsOf, parseForm, textOf } from "./form";

const SCHEMA: JsonObject = {
  type: "object",
  properties: {
    path: { type: "string", description: "Where." },
    ms: { type: "integer", minimum: 0, maximum: 10 },
    ratio: { type: ["number", "null"] },
    urgent: { type: "boolean" },
    level: { enum: ["low", "high"] },
    value: {},
    list: { type: "array" },
  },
  required: ["path"],
};

describe("forms", () => {
  it("have a field for each argument, and one for what the schema does not know", () => {
    const kinds = Object.fromEntries(fieldsOf(SCHEMA, { extra: 1 }).map((field) => [field.name, field.kind]));
    expect(kinds).toEqual({ path: "text", ms: "integer", ratio: "number", urgent: "boolean", level: "choice", value: "json", list: "json", extra: "json" });
  });

  it("edit references as the text they are, for every type", () => {
    expect(fieldsOf(SCHEMA, { ms: "${wait.ms}" }).find((field) => field.name === "ms")?.kind).toBe("text");
  });

  it("give back what they were given", () => {
    const value: JsonObject = { path: "a\nb", ms: 3, urgent: false, level: "low", value: { a: [1] }, list: [1, "x"], extra: null };
    const fields = fieldsOf(SCHEMA, value);
    const texts = Object.fromEntries(fields.map((field) => [field.name, textOf(field, value[field.name])]));
    expect(parseForm(fields, texts)).toEqual({ value, errors: {} });
  });

  it("leave out what is empty and optional", () => {
    expect(parseForm(fieldsOf(SCHEMA), { path: "x" })).toEqual({ value: { path: "x" }, errors: {} });
  });

  it("say what is wrong, by field", () => {
    const { errors } = parseForm(fieldsOf(SCHEMA), { path: "x", ms: "11", ratio: "much", list: "[1", urgent: "" });
    expect(errors).toEqual({ ms: "ms has to be at most 10", ratio: "ratio has to be a number", list: "list has to be JSON: text needs quotes around it" });
    expect(parseForm(fieldsOf(SCHEMA), { path: "x", ms: "1.5" }).errors).toEqual({ ms: "ms has to be a whole number" });
  });

  it("do not take a schema that is none for an error", () => {
    for (const schema of [undefined, null, true, [], "x"]) expect(fieldsOf(schema)).toEqual([]);
  });
});
