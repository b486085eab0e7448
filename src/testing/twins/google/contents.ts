import type { Refusal } from "../contract.ts";
import type { Fields } from "../fields.ts";
import { fieldsOf, listOf } from "../fields.ts";
import { refuse, refuseField } from "./refusal.ts";

/** A request whose form is right. */
export interface GenerateRequest {
  readonly body: Fields;
  readonly model: string;
  readonly contents: readonly Content[];
}

export interface Content {
  readonly role: "user" | "model";
  readonly index: number;
  readonly parts: readonly Part[];
}

export interface Part {
  /** The one field that the part is about. */
  readonly kind: string;
  readonly fields: Fields;
}

/** "GenerateContent" › Part: exactly one of these, and what may go with it. */
const kinds = [
  "text",
  "inlineData",
  "functionCall",
  "functionResponse",
  "fileData",
  "executableCode",
  "codeExecutionResult",
  "toolCall",
  "toolResponse",
];
const known = new Set([
  ...kinds,
  "thought",
  "thoughtSignature",
  "videoMetadata",
  "mediaResolution",
  "partMetadata",
]);

export function parseContents(list: readonly unknown[]): readonly Content[] | Refusal {
  const contents: Content[] = [];
  for (const [index, each] of list.entries()) {
    const place = `contents[${index}]`;
    const fields = fieldsOf(each);
    if (fields === null)
      return refuseField(
        "content_form",
        place,
        `Invalid value at '${place}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content)`,
      );
    const { role = "user" } = fields;
    if (role !== "user" && role !== "model") {
      // "GenerateContent" › Content: the producer is the user or the model.
      return refuse("unknown_role", "Please use a valid role: user, model.");
    }
    const parts = parseParts(fields.parts, place);
    if ("rule" in parts) return parts;
    contents.push({ role, index, parts });
  }
  return contents;
}

/** Published refusal: "contents.parts must not be empty." */
export function parseParts(value: unknown, place: string): readonly Part[] | Refusal {
  const list = value === undefined ? [] : listOf(value);
  if (list === null) return refuseField("parts_form", `${place}.parts`, `Invalid value at '${place}.parts'`);
  if (list.length === 0) {
    return refuse(
      "empty_parts",
      `* GenerateContentRequest.${place}.parts: contents.parts must not be empty.\n`,
    );
  }
  const parts: Part[] = [];
  for (const [index, each] of list.entries()) {
    const part = parsePart(each, `${place}.parts[${index}]`);
    if ("rule" in part) return part;
    parts.push(part);
  }
  return parts;
}

function parsePart(value: unknown, place: string): Part | Refusal {
  const fields = fieldsOf(value) ?? {};
  const given = Object.keys(fields).filter((name) => fields[name] !== undefined);
  const unknown = given.find((name) => !known.has(name));
  if (unknown !== undefined) {
    const message = `Invalid JSON payload received. Unknown name "${unknown}" at '${place}': Cannot find field.`;
    return refuseField("unknown_field", place, message);
  }
  const [kind, second] = given.filter((name) => kinds.includes(name));
  if (second !== undefined) {
    const message = `Invalid value at '${place}' (oneof), oneof field 'data' is already set. Cannot set '${second}'`;
    return refuseField("part_of_two_kinds", place, message);
  }
  // A text may be empty where a signature came alone, as the last part of a stream.
  const isEmpty = kind === "text" && fields.text === "" && fields.thoughtSignature === undefined;
  if (kind === undefined || isEmpty) {
    const message = "required oneof field 'data' must have one initialized field";
    return refuse("empty_part", `* GenerateContentRequest.${place}.data: ${message}\n`);
  }
  if (kind !== "text" || typeof fields.text === "string") return { kind, fields };
  return refuseField("text_form", `${place}.text`, `Invalid value at '${place}.text' (TYPE_STRING)`);
}
