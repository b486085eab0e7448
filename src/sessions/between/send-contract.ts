import type { RunStore } from "../../runs/contract.ts";
import type { Denied } from "../access/contract.ts";
import type { BetweenDeps } from "./contract.ts";

/** What sending needs of {@link BetweenDeps}. */
export interface SendDeps
  extends Pick<
    BetweenDeps,
    "store" | "access" | "settings" | "clock" | "owner" | "untilEnded" | "report" | "modelWindow"
  > {
  readonly runs: Pick<RunStore, "accept" | "get" | "replyWait" | "stopAwaiting" | "waits">;
}

/** A message to another session. Texts are trimmed; blank ones are left out. */
export interface SendRequest {
  readonly sessionKey?: string;
  readonly label?: string;
  /** Alone: this agent's main session. With a label: whose. With a key: to agree with it. */
  readonly agentId?: string;
  readonly message: string;
  /** How long the reply is waited for; 0 or left out: not at all. */
  readonly timeoutSeconds?: number;
  /** `assistant`: as the target's own words, without a turn. */
  readonly role?: "user" | "assistant";
}

/** The same for every asker and surface. A refusal is one too, with `code` and `error`. */
export type SendResult = {
  readonly runId: string;
  readonly status: "sent" | "ok" | "timeout" | "error" | "aborted" | "forbidden";
  /** As the asker would write it. */
  readonly sessionKey?: string;
  readonly reply?: string;
  readonly code?: string;
  readonly error?: string;
  readonly note?: string;
  /** The app without which the target cannot run; no process of it does now. */
  readonly waitsForApp?: string;
  readonly retryable?: boolean;
  /** Of `budget_exceeded`: the limit and the figures. */
  readonly budget?: Readonly<Record<string, string | number>>;
  /** The reply comes later, as a message of its own. */
  readonly delivery?: { readonly status: "pending"; readonly mode: "announce" };
};

/** A refusal without what every one has. */
export type SendRefusal = Pick<SendResult, "status" | "code" | "error" | "retryable" | "sessionKey">;

export const pendingDelivery = { status: "pending", mode: "announce" } as const;

export function unfit(error: string): SendRefusal {
  return { status: "error", code: "invalid_arguments", error };
}

export function refusalOf({ status, code, error, retryable }: Denied): SendRefusal {
  return { status, code, error, ...(retryable ? { retryable } : {}) };
}
