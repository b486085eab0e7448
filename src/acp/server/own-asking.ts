import type { Timing } from "../../client/retry.ts";
import { present } from "../../core/present.ts";
import type { Calls } from "../../protocol/methods/calls.ts";
import type { AcpParts } from "./contract.ts";
import type { Permissions } from "./permissions.ts";

export interface OwnAskingParts extends Pick<AcpParts, "whose" | "report" | "lookMs"> {
  /** Asks again for as long as a gateway says not now. */
  readonly reading: Calls<"approvals.list">;
  readonly permissions: Permissions;
  readonly timing: Timing;
}

/** So many are asked for at once, as many as may be. */
const mostQuestions = 500;

/**
 * What a session that is open in an editor asks itself. An answer that another process on the folder wrote is told by no event
 * here: it is looked for, for as long as something is asked.
 */
export class OwnAsking {
  readonly #key: string;
  readonly #parts: OwnAskingParts;
  #takeBackTimer: (() => void) | null = null;
  #isClosed = false;

  constructor(key: string, parts: OwnAskingParts) {
    this.#key = key;
    this.#parts = parts;
  }

  /** What was asked for while nobody listened; and what was answered is taken back. In the order of the events. */
  async askAgain(): Promise<void> {
    const { permissions } = this.#parts;
    const approvals = await this.#list({ sessionKey: this.#key });
    if (approvals.length < mostQuestions)
      permissions.stillOpen(
        approvals.map(({ approvalId }) => approvalId),
        "own",
      );
    for (const each of approvals) permissions.requested(each);
  }

  /** The run goes on or has ended: what was asked for it may be answered. */
  heardOf(runId: string): void {
    const { permissions, report } = this.#parts;
    if (!permissions.isAsking(runId)) return;
    void this.#takeBack().catch((error: unknown) => {
      if (!this.#isClosed) report(error);
    });
  }

  /** Something is asked: until nothing is, others are looked after. */
  watch(): void {
    const { timing, lookMs, permissions, report } = this.#parts;
    if (lookMs === undefined || this.#isClosed || this.#takeBackTimer !== null) return;
    this.#takeBackTimer = timing.setTimer(lookMs, () => {
      void this.#takeBack()
        .catch((error: unknown) => {
          if (!this.#isClosed) report(error);
        })
        .then(() => {
          this.#takeBackTimer = null;
          if (permissions.openIds.length > 0) this.watch();
        });
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#takeBackTimer?.();
  }

  /** Of what was open before it was looked, whoever asked it: what is asked meanwhile is not in the list. */
  async #takeBack(): Promise<void> {
    const { permissions } = this.#parts;
    const before = permissions.openIds;
    if (before.length === 0) return;
    const approvals = await this.#list({});
    if (approvals.length >= mostQuestions) return;
    const open = new Set(approvals.map(({ approvalId }) => approvalId));
    for (const id of before) if (!open.has(id)) permissions.resolved(id);
  }

  async #list(of: { readonly sessionKey?: string }) {
    const { reading, whose } = this.#parts;
    const params = { ...of, limit: mostQuestions, ...present({ userId: whose.userId }) };
    return (await reading.call("approvals.list", params)).approvals;
  }
}
