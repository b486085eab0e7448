import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { modelRequest } from "../../src/agents/models/model-request.ts";
import { openModel } from "../../src/agents/models/open-model.ts";
import type { TwinApi, TwinRequest } from "../../src/entry-testing.ts";
import type { TranscriptMessage, TranscriptPolicy } from "../../src/index.ts";
import { toolNames } from "./conversation.ts";

const tools = toolNames.map((name) => ({ name, inputSchema: { type: "object", properties: {} } }));
const nowhere = "http://127.0.0.1:9";

export function requestOptions(
  policy: TranscriptPolicy,
  transcript: readonly TranscriptMessage[],
  thinkingLevel = "off",
): LanguageModelV4CallOptions {
  return modelRequest({ transcript, policy, system: "You are a helper.", tools, thinkingLevel }).options;
}

/** The request that the AI SDK builds from a transcript, captured before it is sent. */
export class ToWire {
  readonly #policy: TranscriptPolicy;
  readonly #model: LanguageModelV4;
  readonly #caught: TwinRequest[];

  private constructor(policy: TranscriptPolicy, model: LanguageModelV4, caught: TwinRequest[]) {
    this.#policy = policy;
    this.#model = model;
    this.#caught = caught;
  }

  static async open(policy: TranscriptPolicy): Promise<ToWire> {
    const caught: TwinRequest[] = [];
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const { pathname, search } = new URL(String(input));
      const headers = Object.fromEntries(new Headers(init?.headers));
      const body = JSON.parse(String(init?.body)) as unknown;
      caught.push({ method: init?.method ?? "GET", path: `${pathname}${search}`, headers, body });
      return new Response("", { headers: { "content-type": "text/event-stream" } });
    };
    const baseUrl = `${nowhere}${policy.api === "google-generative-ai" ? "/v1beta" : "/v1"}`;
    return new ToWire(policy, await openModel(policy, { apiKey: "none", baseUrl, fetch }), caught);
  }

  get api(): TwinApi {
    return this.#policy.api;
  }

  async request(transcript: readonly TranscriptMessage[], thinkingLevel = "off"): Promise<TwinRequest> {
    const { stream } = await this.#model.doStream(requestOptions(this.#policy, transcript, thinkingLevel));
    await stream.cancel();
    const sent = this.#caught.pop();
    if (sent === undefined) throw new Error("nothing was sent");
    return sent;
  }
}
