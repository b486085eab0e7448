import { decodeProtoBytes } from "../base64.ts";
import type { Refusal } from "../contract.ts";
import { fieldsOf } from "../fields.ts";
import { signatures } from "../signatures.ts";
import type { Content, GenerateRequest, Part } from "./contents.ts";
import { mustSign } from "./models.ts";
import { refuse, refuseField } from "./refusal.ts";

/** "Thought signatures" › FAQs: what stands for a signature that nobody has. */
const stand = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

export function checkSignatures(request: GenerateRequest): Refusal | null {
  return checkGiven(request) ?? checkRequired(request);
}

/** The form is that of bytes. Published refusals: "Base64 decoding failed", "Corrupted thought signature." */
function checkGiven({ contents, model }: GenerateRequest): Refusal | null {
  for (const { index, parts } of contents) {
    for (const [at, { fields }] of parts.entries()) {
      const { thoughtSignature: signature } = fields;
      if (signature === undefined || (typeof signature === "string" && stand.includes(signature))) continue;
      const place = `contents[${index}].parts[${at}].thought_signature`;
      if (typeof signature !== "string" || decodeProtoBytes(signature) === null) {
        const found = `Base64 decoding failed for ${JSON.stringify(signature)}`;
        return refuseField("signature_base64", place, `Invalid value at '${place}' (TYPE_BYTES), ${found}`);
      }
      if (!signatures.verify("google-generative-ai", model, "", signature)) {
        return refuse("signature_corrupted", "Corrupted thought signature.");
      }
    }
  }
  return null;
}

/**
 * "Thought signatures" › Function calling: in each step of the current turn the first call has its signature. The turn
 * began when the user last said something.
 */
function checkRequired({ contents, model }: GenerateRequest): Refusal | null {
  if (!mustSign(model)) return null;
  for (const content of contents.slice(contents.findLastIndex(isSaid) + 1)) {
    const call = content.parts.find((part) => part.kind === "functionCall");
    if (call === undefined || call.fields.thoughtSignature !== undefined) continue;
    return refuse("signature_missing", missing(call, content.index));
  }
  return null;
}

function isSaid({ role, parts }: Content): boolean {
  return role === "user" && !parts.some((part) => part.kind === "functionResponse");
}

function missing(call: Part, index: number): string {
  const name = fieldsOf(call.fields.functionCall)?.name;
  return [
    "Function call is missing a thought_signature in functionCall parts.",
    "This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance.",
    `Additional data, function call \`default_api:${name}\` , position ${index + 1}.`,
    "Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
  ].join(" ");
}
