import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { openModel } from "../../src/agents/models/open-model.ts";
import { checkRequest, startTwin } from "../../src/entry-testing.ts";
import type { ContextMessage, TranscriptMessage } from "../../src/index.ts";
import { prepareTranscript, resolveTranscriptPolicy } from "../../src/index.ts";
import { modelMessage } from "../../src/transcript/model-message.ts";
import { repetitions } from "../support/repetitions.ts";
import { runSeed } from "../support/run-seed.ts";
import type { Speaker } from "./conversation.ts";
import { optionsOf, shrunk, transcriptOf } from "./generate.ts";
import { requestOptions, ToWire } from "./to-wire.ts";
import { twinSigner } from "./twin-signer.ts";

/** The run's seed is the seed of the first transcript. */
const runs = repetitions.transcripts;
const overHttp = Math.min(runs, 100);
const unsanitised = Math.min(runs, 2000);
/** Some rules are rarely broken. Up to this many transcripts are tried until each rule has been. */
const mostTried = 40_000;
const minutes = Math.max(10, runs / 1000) * 60_000;

const seeds = (count: number) => Array.from({ length: count }, (_, index) => runSeed + index);

/** Every third request enables thinking. */
const levelOf = (seed: number) => (seed % 3 === 0 ? "high" : "off");

/**
 * The tests for one provider. Thousands of transcripts are converted to its wire format by the AI SDK and checked
 * against its rules. `refusedFor` lists the rules that the same transcripts break without preparation.
 */
export function describeProvider(title: string, speaker: Speaker, refusedFor: readonly string[]): void {
  const policy = resolveTranscriptPolicy(speaker);

  describe(title, () => {
    test("the rules accept the request", {
      timeout: minutes,
    }, async () => {
      const wire = await ToWire.open(policy);
      for (const seed of seeds(runs)) {
        const refused = async (messages: readonly ContextMessage[]) => {
          const { messages: transcript } = await prepareTranscript(messages, policy, optionsOf(seed));
          return checkRequest(wire.api, await wire.request(transcript, levelOf(seed)));
        };
        const { messages, damage } = transcriptOf(seed, twinSigner());
        if ((await refused(messages)) === null) continue;
        const least = await shrunk(messages, async (fewer) => (await refused(fewer)) !== null);
        expect.fail(
          `transcript ${seed} (${damage.join(", ")}), thinking ${levelOf(seed)}: ` +
            `${JSON.stringify(await refused(least))}\n${JSON.stringify(least, null, 1)}`,
        );
      }
    });

    test("a server with that wire format answers", { timeout: minutes }, async () => {
      const twin = await startTwin({ api: policy.api });
      try {
        const model = await openModel(policy, { apiKey: "any", baseUrl: twin.url });
        for (const seed of seeds(overHttp)) {
          const { messages } = transcriptOf(seed, twinSigner());
          const { messages: transcript } = await prepareTranscript(messages, policy, optionsOf(seed));
          const { stream } = await model.doStream(requestOptions(policy, transcript, levelOf(seed)));
          const parts: LanguageModelV4StreamPart[] = [];
          for await (const part of stream) parts.push(part);
          expect(parts.filter((part) => part.type === "error")).toEqual([]);
          expect(parts.at(-1)?.type).toBe("finish");
        }
        expect(twin.requests.filter((request) => request.refusal !== null)).toEqual([]);
      } finally {
        await twin.close();
      }
    });

    test("without preparation such transcripts are refused", { timeout: minutes }, async () => {
      const wire = await ToWire.open(policy);
      const rules = new Map<string, number>();
      let tried = 0;
      const isEnough = () => tried >= unsanitised && refusedFor.every((rule) => rules.has(rule));
      for (const seed of seeds(mostTried)) {
        if (isEnough()) break;
        tried += 1;
        const rule = await ruleBroken(wire, transcriptOf(seed, twinSigner()).messages);
        rules.set(rule, (rules.get(rule) ?? 0) + 1);
      }
      expect([...rules.keys()]).toEqual(expect.arrayContaining([...refusedFor]));
      expect(rules.get("none") ?? 0).toBeLessThan(tried / 5);
    });
  });
}

async function ruleBroken(wire: ToWire, messages: readonly ContextMessage[]): Promise<string> {
  const raw: readonly TranscriptMessage[] = messages.map(modelMessage).filter((message) => message !== null);
  try {
    return checkRequest(wire.api, await wire.request(raw))?.rule ?? "none";
  } catch {
    return "not even sent";
  }
}
