import type { ApproveOptions } from "../agents/contract.ts";
import type { ToolCallBlock } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { HeldRun } from "../runs/contract.ts";
import type { App } from "./app.ts";

type Waited<T> =
  | { readonly entered: true; readonly value: T }
  | { readonly entered: false; readonly cycle: readonly string[] };
type WaitingApp = {
  readonly runs: Pick<App["runs"], "wait">;
  readonly worker: Pick<App["worker"], "resume">;
};

/**
 * The waits of one run. Several calls in one message can wait at the same time. The first wait frees the run's slot,
 * and the run takes a slot again when the last wait ends.
 */
export class Waiting {
  readonly #app: WaitingApp;
  readonly #held: HeldRun;
  readonly #signal: AbortSignal;
  #depth = 0;
  #isWaiting = false;
  #resuming: Promise<void> | null = null;

  constructor(app: WaitingApp, held: HeldRun, signal: AbortSignal) {
    this.#app = app;
    this.#held = held;
    this.#signal = signal;
  }

  async while<T>(
    kind: "run" | "approval",
    runIds: readonly string[],
    wait: () => Promise<T>,
  ): Promise<Waited<T>> {
    // Checked again after each resume, because the last wait might end while this one is about to begin.
    while (this.#resuming !== null) await this.#resuming;
    this.#depth += 1;
    try {
      const entered = await this.#enter(kind, runIds);
      if (!entered.entered) return entered;
      this.#isWaiting = true;
      return { entered: true, value: await wait() };
    } finally {
      this.#depth -= 1;
      if (this.#depth === 0 && this.#isWaiting) await this.#resume();
    }
  }

  #enter(kind: "run" | "approval", runIds: readonly string[]) {
    return this.#app.runs.wait(this.#held, { for: kind, runIds });
  }

  async #resume(): Promise<void> {
    this.#isWaiting = false;
    const resuming = this.#app.worker.resume(this.#held, this.#signal).finally(() => {
      this.#resuming = null;
    });
    this.#resuming = resuming;
    await resuming;
  }
}

/**
 * Asks users to approve a call and frees the run's slot until they answer. If there is no answer in time, the call is
 * denied.
 */
export async function askApproval(
  app: Pick<App, "runs" | "clock" | "config" | "watcher">,
  held: HeldRun,
  waiting: Waiting,
  { id, name, arguments: args }: ToolCallBlock,
  signal: AbortSignal,
  { signal: asking = signal, callDigest, isReplay }: ApproveOptions = {},
): Promise<{ readonly approved: boolean; readonly note: string }> {
  asking.throwIfAborted();
  const { timeoutSeconds } = app.config.approvals;
  // A request that is retried after its owner was lost finds the same approval with its original deadline.
  const { approvalId, expiresAt } = await app.runs.requestApproval(held, {
    toolCallId: id,
    toolName: name,
    arguments: args,
    expiresAt: app.clock.now() + timeoutSeconds * 1000,
    ...present({ callDigest, isReplay }),
  });
  const until = AbortSignal.any([signal, asking]);
  await waiting.while("approval", [], () => app.watcher.untilApproved(approvalId, expiresAt, until));
  signal.throwIfAborted();
  const resolved = await app.runs.resolveApproval(approvalId, "expired", null);
  const { answer, note } = { answer: resolved?.answer ?? "expired", note: resolved?.note ?? null };
  asking.throwIfAborted();
  const notes = {
    approved: "It was approved.",
    denied: `A person rejected it${note === null ? "." : ` and said: ${note}`}`,
    expired: `No one answered within ${timeoutSeconds} seconds.`,
  };
  return { approved: answer === "approved", note: notes[answer] };
}
