import type { Refusal, TwinRequest } from "../contract.ts";
import type { Fields } from "../fields.ts";
import { fieldsOf, listOf } from "../fields.ts";
import { parseParts } from "./contents.ts";
import { refuse, refuseField } from "./refusal.ts";

/** The key, and the fields that a request has. */
export function checkFields(request: TwinRequest, body: Fields): Refusal | null {
  return checkKey(request) ?? checkContents(body) ?? checkSystem(body.systemInstruction);
}

/** "API keys": in a header, or in the query. */
function checkKey({ headers, path }: TwinRequest): Refusal | null {
  if (headers["x-goog-api-key"] || /[?&]key=[^&]/.test(path)) return null;
  const found = "Method doesn't allow unregistered callers (callers without established identity).";
  const advice = "Please use API Key or other form of API consumer identity to call this API.";
  return refuse("api_key", `${found} ${advice}`, 403);
}

/** "GenerateContent" › Request body: `contents` is required. */
function checkContents({ contents }: Fields): Refusal | null {
  const list = contents === undefined ? [] : listOf(contents);
  if (list === null) return refuseField("contents_form", "contents", "Invalid value at 'contents'");
  if (list.length > 0) return null;
  return refuse("no_contents", "* GenerateContentRequest.contents: contents is not specified\n");
}

/** "GenerateContent" › `systemInstruction`: a content, of text only. */
function checkSystem(system: unknown): Refusal | null {
  if (system === undefined) return null;
  const place = "system_instruction";
  const parts = parseParts(fieldsOf(system)?.parts, place);
  if ("rule" in parts) return parts;
  const index = parts.findIndex((part) => part.kind !== "text");
  if (index === -1) return null;
  return refuse(
    "system_not_text",
    `* GenerateContentRequest.${place}.parts[${index}]: only text is supported\n`,
  );
}
