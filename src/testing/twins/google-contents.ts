import type { Fields } from "./shared.ts";
import { countTokens, fieldsOf, isFields, listOf, measureRequest, pathOf, RefusedRequest } from "./shared.ts";

/** The structure of a GenerateContent request: its path, its errors, and its contents as parts. */

/** Returns the model and method in `/v1beta/models/<model>:<method>`, or `null` for any other path. */
export function parsePath(path: string): { readonly model: string; readonly method: string } | null {
  const [, model = "", method = ""] = /^\/v1beta\/models\/(.*):([^:]*)$/s.exec(pathOf(path)) ?? [];
  return model === "" && method === "" ? null : { model, method };
}

/**
 * "Thought signatures" › Model behavior: Gemini 3 and later reject a function call without its signature. Earlier
 * models and image models accept it.
 */
export function mustSign(model: string): boolean {
  return /^gemini-/.test(model) && !/^gemini-[12](?:[.-]|$)/.test(model) && !model.includes("-image");
}

/** "Troubleshooting guide" › Error codes: the `status` for each code. */
const statuses: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  409: "ABORTED",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

export function googleErrorBody(code: number, message: string): { readonly error: Fields } {
  const status = statuses[code] ?? (code >= 500 ? "INTERNAL" : "INVALID_ARGUMENT");
  return { error: { code, message, status } };
}

export function refuse(rule: string, message: string, code = 400): never {
  throw new RefusedRequest({ status: code, rule, body: googleErrorBody(code, message) });
}

/** Rejects a field's value with the real server's validation message. */
export function refuseValue(rule: string, field: string, problem: string): never {
  refuse(rule, `* GenerateContentRequest.${field}: ${problem}\n`);
}

/** Rejects a field's structure. The real server repeats the problem in its details. */
export function refuseForm(rule: string, field: string, message = `Invalid value at '${field}'`): never {
  const violation = { field, description: message };
  const details = [{ "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations: [violation] }];
  const { error } = googleErrorBody(400, message);
  throw new RefusedRequest({ status: 400, rule, body: { error: { ...error, details } } });
}

export interface Content {
  readonly role: "user" | "model";
  readonly index: number;
  readonly parts: readonly Part[];
}

export interface Part {
  /** The one field that defines the part. */
  readonly kind: string;
  readonly fields: Fields;
  /** The location as the real server names it: `contents[3].parts[1]`. */
  readonly place: string;
}

/** "GenerateContent" › Part: exactly one of these fields, and the fields allowed with it. */
const partKinds = [
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
const partExtras = ["thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"];

export function parseContents(contents: unknown): readonly Content[] {
  return listOf(contents).map((content, index) => {
    const place = `contents[${index}]`;
    if (!isFields(content)) {
      const type = "type.googleapis.com/google.ai.generativelanguage.v1beta.Content";
      return refuseForm("content_form", place, `Invalid value at '${place}' (${type})`);
    }
    const { role = "user", parts } = content;
    // "GenerateContent" › Content: the producer is the user or the model.
    if (role !== "user" && role !== "model")
      return refuse("unknown_role", "Please use a valid role: user, model.");
    return { role, index, parts: parseParts(parts, place) };
  });
}

export function parseParts(parts: unknown, place: string): readonly Part[] {
  if (parts !== undefined && !Array.isArray(parts)) refuseForm("parts_form", `${place}.parts`);
  const list = listOf(parts);
  // Published error.
  if (list.length === 0) refuseValue("empty_parts", `${place}.parts`, "contents.parts must not be empty.");
  return list.map((part, index) => parsePart(fieldsOf(part), `${place}.parts[${index}]`));
}

function parsePart(fields: Fields, place: string): Part {
  const names = Object.keys(fields).filter((name) => fields[name] !== undefined);
  const unknown = names.find((name) => !partKinds.includes(name) && !partExtras.includes(name));
  if (unknown !== undefined) {
    const message = `Invalid JSON payload received. Unknown name "${unknown}" at '${place}': Cannot find field.`;
    refuseForm("unknown_field", place, message);
  }
  const [kind, second] = names.filter((name) => partKinds.includes(name));
  if (second !== undefined) {
    const message = `Invalid value at '${place}' (oneof), oneof field 'data' is already set. Cannot set '${second}'`;
    refuseForm("part_of_two_kinds", place, message);
  }
  // The text can be empty if a signature arrived separately, as the last part of a stream.
  const isEmpty = kind === "text" && fields.text === "" && fields.thoughtSignature === undefined;
  if (kind === undefined || isEmpty) {
    const problem = "required oneof field 'data' must have one initialized field";
    return refuseValue("empty_part", `${place}.data`, problem);
  }
  if (kind === "text" && typeof fields.text !== "string")
    refuseForm("text_form", `${place}.text`, `Invalid value at '${place}.text' (TYPE_STRING)`);
  return { kind, fields, place };
}

/** Returns the inline data in parts and in function responses, with its location. */
export function inlineDataOf(
  contents: readonly Content[],
): readonly (readonly [place: string, blob: Fields])[] {
  return contents
    .flatMap(({ parts }) => parts)
    .flatMap(({ kind, fields, place }) => {
      if (kind === "inlineData") return [[`${place}.inline_data`, fieldsOf(fields.inlineData)] as const];
      return listOf(fieldsOf(fields.functionResponse).parts).flatMap((part, index) => {
        const { inlineData: blob } = fieldsOf(part);
        const at = `${place}.function_response.parts[${index}].inline_data`;
        return isFields(blob) ? [[at, blob] as const] : [];
      });
    });
}

/** "Tokens" › Images: 258 for an image that is small in both dimensions. */
const tokensPerImage = 258;

/** Counts the tokens in a prompt. All inline data is counted as images of the same size. */
export function countContents(body: Fields): number {
  const data = inlineDataOf(parseContents(body.contents)).map(([, blob]) => blob.data);
  const base64 = data.reduce((sum: number, each) => sum + (typeof each === "string" ? each.length : 0), 0);
  return countTokens(measureRequest(body).text - base64) + data.length * tokensPerImage;
}
