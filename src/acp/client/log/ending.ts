import { cutText } from "../../../core/text.ts";
import { oneLine } from "./content-text.ts";

/** How a turn of an agent ended. */
export type TurnEnding =
  /** `why`: what we know of a turn that the agent ended as cancelled by itself. */
  | { readonly stopReason: string; readonly usage?: unknown; readonly why?: string }
  | { readonly failed: string };

export interface Ending {
  readonly stopReason: "stop" | "length" | "error" | "aborted";
  readonly errorMessage?: string;
  /** In the agent's words. */
  readonly raw: string | null;
  /** What stands for the result of a call that is open still. */
  readonly openCall: string;
}

const mostMessage = 4000;

export function endingOf(end: TurnEnding): Ending {
  if ("failed" in end) {
    const errorMessage = cutText(end.failed, mostMessage);
    return { stopReason: "error", errorMessage, raw: null, openCall: cutOff("failed") };
  }
  const raw = oneLine(end.stopReason, 64);
  const openCall = cutOff("ended");
  switch (raw) {
    case "end_turn":
      return { stopReason: "stop", raw, openCall };
    case "max_tokens":
    case "max_turn_requests":
      return { stopReason: "length", raw, openCall };
    case "cancelled":
      return aborted(raw, end.why);
    case "refusal":
      return { stopReason: "error", errorMessage: "The agent refused to go on.", raw, openCall };
    default:
      return {
        stopReason: "error",
        errorMessage: `The agent stopped for an unknown reason (${raw}).`,
        raw,
        openCall,
      };
  }
}

function aborted(raw: string, why = "The turn was aborted."): Ending {
  return {
    stopReason: "aborted",
    errorMessage: cutText(why, mostMessage),
    raw,
    openCall: cutOff("was aborted"),
  };
}

function cutOff(how: string): string {
  return `[skein] This call has no result: the agent's turn ${how} before it did.`;
}
