import type { LanguageModelV4CallOptions, SharedV4Warning } from "@ai-sdk/provider";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { Change } from "../../transcript/contract.ts";
import type { ModelRef } from "../../transcript/parse-model.ts";
import type { ModelType } from "../models/open-model.ts";
import { openModel } from "../models/open-model.ts";

/** What went over the wire, had it been sent. */
export interface Wire {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** What the provider's package left out of the request, or put differently. */
  readonly warnings: readonly Change[];
}

/** An address and a key that lead nowhere: nothing is sent. */
const nowhere = { apiKey: "none", baseUrl: "http://127.0.0.1:9/v1" };

/** The very body that the SDK would send for a streamed answer. Nothing goes out. */
export async function wireBody(options: LanguageModelV4CallOptions, ref: ModelRef): Promise<unknown> {
  return (await captureWire(options, ref)).body;
}

/** The whole request, by the package that would make it for this model and type of provider. */
export async function captureWire(
  options: LanguageModelV4CallOptions,
  ref: ModelRef,
  type?: ModelType,
): Promise<Wire> {
  const sent: Omit<Wire, "warnings">[] = [];
  const capture: typeof globalThis.fetch = async (url, init) => {
    const headers = Object.fromEntries(new Headers(init?.headers).entries());
    sent.push({ url: String(url), headers, body: JSON.parse(String(init?.body)) });
    return new Response("", { headers: { "content-type": "text/event-stream" } });
  };
  const model = await openModel(ref, { ...nowhere, fetch: capture, ...present({ type }) });
  const warnings: Change[] = [];
  const { stream } = await model.doStream(options);
  for await (const part of stream) {
    if (part.type === "stream-start") warnings.push(...part.warnings.map(changeOf));
  }
  const [request] = sent;
  if (request === undefined) throw new SkeinError("internal", { problem: "no request was made" });
  return { ...request, warnings };
}

function changeOf(warning: SharedV4Warning): Change {
  const note =
    "message" in warning ? warning.message : (warning.details ?? `${warning.feature} is not sent.`);
  return { step: "wireBody", kind: `${warning.type}_warning`, note };
}
