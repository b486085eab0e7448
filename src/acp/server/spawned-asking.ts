import { createTreeCheck } from "../../access/visibility/decide-access.ts";
import { present } from "../../core/present.ts";
import type { Calls, EventStream, ReceivedEvent } from "../../protocol/methods/calls.ts";
import type { Result } from "../../protocol/methods/method-table.ts";
import type { Asked } from "./asked-call.ts";
import type { AcpParts } from "./contract.ts";
import type { Permissions } from "./permissions.ts";
import { SharedStream } from "./shared-stream.ts";

export interface SpawnedParts extends Pick<AcpParts, "whose" | "report"> {
  /** What everybody asks, of this user. */
  readonly stream: EventStream;
  /** Asks again for as long as a gateway says not now. */
  readonly reading: Calls<"sessions.get" | "approvals.list">;
  readonly permissions: Permissions;
}

/** A question as events and lists have it. */
type Question = Omit<Asked, "asker"> & { readonly sessionKey: string };

const shared = new WeakMap<AcpParts["calls"], SharedStream>();

/** One stream for all sessions that an editor has open. */
export function askingStream({ calls, whose }: Pick<AcpParts, "calls" | "whose">): EventStream {
  const events = ["approval.*", "run.resumed", "run.ended"];
  const known =
    shared.get(calls) ??
    new SharedStream(() => calls.events({ events, ...present({ userId: whose.userId }) }));
  shared.set(calls, known);
  return known.subscribe();
}

/** So many are asked for at once, as many as may be. */
const mostQuestions = 500;

/**
 * What sessions ask that were spawned by one that is open in an editor, or by such, at any depth: nobody sees them there, so
 * it is asked in the one that is seen. Of other users' sessions and of those without that lineage nothing is.
 */
export class SpawnedAsking {
  readonly #key: string;
  readonly #parts: SpawnedParts;
  readonly #stream: EventStream;
  #isClosed = false;

  constructor(key: string, parts: SpawnedParts) {
    this.#key = key;
    this.#parts = parts;
    this.#stream = parts.stream;
  }

  get ready(): Promise<void> {
    return this.#stream.ready;
  }

  /** Asks what is waiting, then what comes; ends with the stream. What fails is reported, and what comes after it is asked. */
  async listen(): Promise<void> {
    await this.#unlessFailed(() => this.#askAgain());
    for await (const received of this.#stream) {
      if (this.#isClosed) return;
      await this.#unlessFailed(() => this.#take(received));
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#stream.close();
  }

  get #user(): { readonly userId?: string } {
    return present({ userId: this.#parts.whose.userId });
  }

  async #take(received: ReceivedEvent): Promise<void> {
    switch (received.event) {
      case "gap":
        return this.#askAgain();
      case "approval.requested":
        return this.#isOurs(received.payload) ? this.#ask(received.payload) : undefined;
      case "approval.resolved":
        return this.#parts.permissions.resolved(received.payload.approvalId, received.payload.answer);
      case "run.resumed":
      case "run.ended":
        // An answer that another process on the folder wrote is told by no event here.
        return this.#parts.permissions.isAsking(received.payload.runId) ? this.#askAgain() : undefined;
      default:
        return;
    }
  }

  /** What was asked for while nobody listened; and what was answered is taken back. */
  async #askAgain(): Promise<void> {
    const { reading, permissions } = this.#parts;
    const { approvals } = await reading.call("approvals.list", { limit: mostQuestions, ...this.#user });
    if (approvals.length < mostQuestions) {
      const ids = approvals.map(({ approvalId }) => approvalId);
      permissions.stillOpen(ids, "spawned");
    }
    for (const each of approvals) await this.#unlessFailed(() => this.#ask(each));
  }

  /** Lists are one user's; events may be everybody's, and say whose where they are. */
  #isOurs({ userId }: { readonly userId?: string }): boolean {
    const ours = this.#parts.whose.userId;
    return (userId ?? ours) === ours;
  }

  async #ask(question: Question): Promise<void> {
    if (question.sessionKey === this.#key) return;
    const asking = await this.#read(question.sessionKey);
    if (asking === null || !(await this.#isBelow(asking))) return;
    this.#parts.permissions.requested({
      ...question,
      asker: { key: asking.key, ...present({ label: asking.label }) },
    });
  }

  #isBelow({ key, agentId, spawnedBy }: Result<"sessions.get">): boolean | Promise<boolean> {
    const isInTree = createTreeCheck(async (above) => (await this.#read(above))?.spawnedBy ?? null);
    return isInTree(this.#key, {
      userId: this.#parts.whose.userId ?? null,
      agentId,
      key,
      spawnedBy: spawnedBy ?? null,
    });
  }

  /** `null`: it is gone, or nothing that this user may see. */
  async #read(key: string): Promise<Result<"sessions.get"> | null> {
    try {
      const found = await this.#parts.reading.call("sessions.get", { key, ...this.#user });
      return found.key === key ? found : null;
    } catch (error) {
      if ((error as { readonly code?: unknown } | null)?.code === "not_found") return null;
      throw error;
    }
  }

  async #unlessFailed(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!this.#isClosed) this.#parts.report(error);
    }
  }
}
