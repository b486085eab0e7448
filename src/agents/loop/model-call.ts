import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { Change, TranscriptMessage } from "../../transcript/contract.ts";
import type { ToolNames } from "../../transcript/tool-names.ts";
import { modelRequest } from "../ai-sdk/model-request.ts";
import type { RequestPlan } from "../contract.ts";
import { outputOptions, withOutputRules } from "./output.ts";

export interface ModelCall {
  readonly options: LanguageModelV4CallOptions;
  /** The system prompt as it is sent. */
  readonly system: string | null;
  /** What the model cannot be asked for. */
  readonly changes: readonly Change[];
  /** Maps the names of the calls in the answer back. */
  readonly toolNames: ToolNames;
}

/** Builds the call to a model. Runs and the X-ray both use it, so that the X-ray shows what a run sends. */
export function buildModelCall(plan: RequestPlan, transcript: readonly TranscriptMessage[]): ModelCall {
  const system = withOutputRules(plan.system, plan.outputSchema);
  const { options, changes, toolNames } = modelRequest({
    transcript,
    policy: plan.model.policy,
    system: system ?? undefined,
    tools: plan.tools,
    thinkingLevel: plan.thinkingLevel,
    maxOutputTokens: plan.limits.maxOutputTokens,
    info: plan.model.info,
  });
  return { options: outputOptions(options, plan), system, changes, toolNames };
}
