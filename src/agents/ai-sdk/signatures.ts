import { isRecord } from "../../core/shape.ts";
import type { Api } from "../../transcript/contract.ts";
import type { Metadata } from "./metadata.ts";
import { joined, ofProvider, ownName, textFieldOf, without } from "./metadata.ts";

/**
 * A model signs what it says, so that it can take it back: each provider's package keeps that under a name of its own,
 * our format in one field of the block. A signature that the provider has no name for travels under ours.
 */

/** The name that a provider's package keeps its metadata under. */
export const nameOfApi: Readonly<Partial<Record<Api, string>>> = {
  "anthropic-messages": "anthropic",
  "google-generative-ai": "google",
  "openai-responses": "openai",
};

/** A block's signature, and what else was said of it. */
export interface Signed {
  readonly signature?: string;
  readonly redacted?: boolean;
  readonly rest: Metadata | undefined;
}

/** The signature of a text or of a call: Google signs both, Responses gives a text an id and a phase. */
export function signatureIn(metadata: Metadata | undefined, api: Api, kind: "text" | "call"): Signed {
  const own = textFieldOf(metadata, ownName, "signature");
  const rest = without(metadata, ownName, ["signature"]);
  if (api === "google-generative-ai") {
    const signature = own ?? textFieldOf(rest, "google", "thoughtSignature");
    const left = without(rest, "google", ["thoughtSignature"]);
    return signature === undefined ? { rest } : { signature, rest: left };
  }
  if (api === "openai-responses" && kind === "text") {
    const id = textFieldOf(rest, "openai", "itemId");
    if (id === undefined) return own === undefined ? { rest } : { signature: own, rest };
    const phase = textFieldOf(rest, "openai", "phase");
    const left = without(rest, "openai", phase === undefined ? ["itemId"] : ["itemId", "phase"]);
    return { signature: own ?? encodeTextSignature(id, phase), rest: left };
  }
  return own === undefined ? { rest } : { signature: own, rest };
}

/** The same back. What comes in again as another signature is sent along whole, under our name. */
export function signatureOut(
  signature: string | undefined,
  rest: Metadata | undefined,
  api: Api,
  kind: "text" | "call",
): Metadata | undefined {
  if (signature === undefined) return rest;
  const metadata = joined(rest, signatureMetadata(signature, api, kind));
  const isWhole = signatureIn(metadata, api, kind).signature === signature;
  return isWhole ? metadata : joined(metadata, ofProvider(ownName, { signature }));
}

function signatureMetadata(signature: string, api: Api, kind: "text" | "call"): Metadata | undefined {
  if (api === "google-generative-ai") return ofProvider("google", { thoughtSignature: signature });
  if (api !== "openai-responses" || kind !== "text") return undefined;
  const { id, phase } = decodeTextSignature(signature);
  return ofProvider("openai", { itemId: id, phase });
}

/** As pi writes it for Responses. */
function encodeTextSignature(id: string, phase: string | undefined): string {
  return JSON.stringify({ v: 1, id, ...(phase === undefined ? {} : { phase }) });
}

/** Older versions of pi wrote the id alone. */
function decodeTextSignature(signature: string): { id: string; phase?: string } {
  const value = parsed(signature);
  if (!isRecord(value) || value.v !== 1 || typeof value.id !== "string") return { id: signature };
  return { id: value.id, ...(typeof value.phase === "string" ? { phase: value.phase } : {}) };
}

/** JSON, or `undefined` where it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
