import { isRecord } from "../../../core/shape.ts";
import { failed } from "./failures.ts";

/** What is taken of the answer to a prompt, and nothing else that stands in it. */
export interface PromptAnswer {
  readonly stopReason: string;
  readonly usage: unknown;
}

/** Nobody else has looked at it. `acp_failed`: it does not say how the turn ended. */
export function promptAnswer(agent: string, told: unknown): PromptAnswer {
  if (isRecord(told) && typeof told.stopReason === "string")
    return { stopReason: told.stopReason, usage: told.usage };
  throw failed(agent, "its answer to the prompt is none of the protocol: it has no stopReason");
}
