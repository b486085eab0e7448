import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Usage } from "../../core/messages.ts";
import type { Summarise } from "../../transcript/compaction/ask-summariser.ts";
import type { TurnModel } from "../contract.ts";
import { modelRequest } from "./model-request.ts";
import { usageOf } from "./usage.ts";

/** Summaries by the model of a turn. `told` hears what each one used. */
export function summariserOf(
  turnModel: TurnModel,
  signal: AbortSignal,
  told: (usage: Usage) => void = () => undefined,
): Summarise {
  return async ({ system, prompt, maxTokens, signal: own }) => {
    const model = (await turnModel.open()) as LanguageModelV4;
    const { options } = modelRequest({
      transcript: [{ role: "user", content: prompt }],
      policy: turnModel.policy,
      system,
      tools: [],
      maxOutputTokens: maxTokens,
      info: turnModel.info,
    });
    const abortSignal = own === undefined ? signal : AbortSignal.any([signal, own]);
    const { content, usage } = await model.doGenerate({ ...options, abortSignal });
    told(usageOf(usage));
    return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
  };
}
