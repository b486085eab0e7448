import type { Redactor } from "../../access/redaction/redactor.ts";
import type { SkeinEvent } from "../../core/events.ts";
import { eventPayload } from "../../protocol/events.ts";
import { maskFor } from "../masking/mask.ts";
import { pathless } from "../masking/pathless.ts";
import type { ReaderKind } from "./readers.ts";
import { sizeOf } from "./size-of.ts";

export interface KeptOptions {
  readonly seq: number;
  readonly event: SkeinEvent;
  /** Of a delta: what readers who are no admins get in its place. */
  readonly masked: string | null;
  /** The end of a redacted text that was held back: admins have had it. */
  readonly isTail: boolean;
  readonly redactor: Redactor;
}

/** A numbered event. */
export class KeptEvent {
  readonly seq: number;
  /** About how many it takes in memory. */
  readonly bytes: number;
  readonly #redactor: Redactor;
  readonly #isTail: boolean;
  readonly #isNothing: boolean;
  #event: SkeinEvent;
  #masked: string;
  #isForgotten = false;

  constructor({ seq, event, masked, isTail, redactor }: KeptOptions) {
    this.seq = seq;
    this.bytes = sizeOf(event) + (masked?.length ?? 0);
    this.#redactor = redactor;
    this.#isTail = isTail;
    this.#isNothing = masked === "";
    this.#event = event;
    this.#masked = masked ?? "";
  }

  get event(): Pick<SkeinEvent, "type" | "userId" | "sessionKey" | "sessionId"> {
    return this.#event;
  }

  get isForgotten(): boolean {
    return this.#isForgotten;
  }

  /** Of a delta of which nothing can be shown yet, redacted readers get nothing. */
  isFor({ isAdmin }: ReaderKind): boolean {
    return this.#isTail ? !isAdmin : isAdmin || !this.#isNothing;
  }

  /** As JSON. Throws where what a tool said is none. */
  frame({ isAdmin, allUsers }: ReaderKind): string {
    // A delta was redacted with those before it; by itself it says less, and costs as much again.
    const isDelta = this.#event.type === "run.delta";
    const payload = eventPayload(this.#event, {
      isAdmin,
      allUsers,
      redact: (value) => (isDelta ? "" : this.#safe(value)),
      redactDelta: () => this.#masked,
    });
    return JSON.stringify({ type: "event", event: this.#event.type, payload, seq: this.seq });
  }

  /** An entry as methods show it, so that what a reader hears is what it may read. */
  #safe(value: unknown): unknown {
    const redactor = this.#redactor;
    if (this.#event.type === "entry.appended") return maskFor({ redactor }, { isAdmin: false }).value(value);
    return pathless(redactor).redactJson(value).value;
  }

  /** Whose it was and of what kind stays, so that its readers can be told; what it said is gone. */
  forget(): void {
    const { type, at, userId, sessionKey, sessionId } = this.#event;
    this.#event = { type, at, userId, sessionKey, sessionId } as SkeinEvent;
    this.#masked = "";
    this.#isForgotten = true;
  }
}
