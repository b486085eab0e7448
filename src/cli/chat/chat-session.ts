import { SkeinError } from "../../core/errors.ts";
import { createIdSource } from "../../core/ids.ts";
import { displayKey } from "../../core/references.ts";
import type { Params } from "../../protocol/methods/method-table.ts";
import type { SessionDetailsPayload } from "../../protocol/session-details.ts";
import type { NamedSession } from "../connection/resolve-session.ts";
import { codeIn } from "../connection/resolve-session.ts";
import type { OpenSkeinCalls } from "../connection/with-skein-calls.ts";

export type Sending = Pick<Params<"sessions.send">, "model" | "thinking">;

/** The images that a message names. */
type ReadNamed = (
  to: NamedSession,
  message: string,
) => Promise<NonNullable<Params<"sessions.send">["attachments"]>>;

/** The session that is spoken to: whatever has its key now. */
export class ChatSession {
  readonly open: OpenSkeinCalls;
  readonly sending: Sending;
  readonly #readNamed: ReadNamed;
  readonly #newId = createIdSource();
  #to: NamedSession;

  constructor(
    open: OpenSkeinCalls,
    to: NamedSession,
    sending: Sending,
    readNamed: ReadNamed = async () => [],
  ) {
    this.#readNamed = readNamed;
    this.open = open;
    this.#to = to;
    this.sending = sending;
  }

  /** The run that it became. */
  async say(message: string): Promise<string> {
    const attachments = await this.#readNamed(this.#to, message);
    const said = {
      ...{ ...this.#to, message, idempotencyKey: this.#newId(), ...this.sending },
      ...(attachments.length === 0 ? {} : { attachments }),
    };
    return (await this.open.calls.call("sessions.send", said)).runId;
  }

  /** As params of methods name it. */
  get to(): NamedSession {
    return this.#to;
  }

  get key(): string {
    return this.#to.key;
  }

  get shown(): string {
    return displayKey(this.key, this.open.asker);
  }

  moveTo({ key }: { readonly key: string }): void {
    this.#to = { ...this.#to, key };
  }

  /** `null`: nothing was said yet. */
  async details(): Promise<SessionDetailsPayload | null> {
    try {
      return await this.open.calls.call("sessions.get", this.#to);
    } catch (error) {
      if (codeIn(error) === "not_found") return null;
      throw error;
    }
  }

  async known(): Promise<SessionDetailsPayload> {
    const details = await this.details();
    if (details !== null) return details;
    const problem = `Nothing was said in ${this.shown} yet`;
    throw new SkeinError("conflict", { problem, advice: "Say something first" });
  }
}
