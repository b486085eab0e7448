import { SkeinError } from "../../core/errors.ts";
import { displayKey } from "../../core/references.ts";
import type { SendOptions } from "../../sessions/skein/session-handle.ts";
import type { Turn } from "../../sessions/skein/turn-handle.ts";
import type { SessionRecord } from "../../store/contract.ts";
import type { OpenSkein } from "../folder/with-skein.ts";

/** The session that is spoken to: whatever has its key now. */
export class ChatSession {
  readonly open: OpenSkein;
  readonly sending: SendOptions;
  #key: string;

  /** Of a session that is yet to be made. */
  #newId: string | null;

  constructor(
    open: OpenSkein,
    names: { readonly key: string; readonly newId: string | null },
    sending: SendOptions,
  ) {
    this.open = open;
    this.#key = names.key;
    this.#newId = names.newId;
    this.sending = sending;
  }

  say(text: string): Turn {
    const { skein, userId } = this.open;
    const session = skein.session({ userId, sessionKey: this.#key, sessionId: this.#newId });
    this.#newId = null;
    return session.send(text, this.sending);
  }

  get key(): string {
    return this.#key;
  }

  get shown(): string {
    return displayKey(this.#key, this.open.asker);
  }

  moveTo({ key }: Pick<SessionRecord, "key">): void {
    this.#key = key;
  }

  /** `null`: nothing was said yet. */
  record(): Promise<SessionRecord | null> {
    const { skein, userId } = this.open;
    return skein.session({ userId, sessionKey: this.#key }).record();
  }

  async known(): Promise<SessionRecord> {
    const record = await this.record();
    if (record !== null) return record;
    const problem = `Nothing was said in ${this.shown} yet`;
    throw new SkeinError("conflict", { problem, advice: "Say something first" });
  }
}
