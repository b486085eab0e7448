import { setTimeout as sleep } from "node:timers/promises";
import type { ConnectOptions, ReceivedEvent, SkeinClient } from "../../src/entry-client.ts";
import { CallError, connect } from "../../src/entry-client.ts";
import { Chance } from "../transcript/random.ts";
import type { WireEntry } from "./payloads.ts";
import { runSeed } from "./run-seed.ts";

/** The behavior of a client that sends messages continuously, no matter what happens to its gateway. */

export interface TalkerOptions extends ConnectOptions {
  readonly url: string;
  /** Also used as the name of the client's session. */
  readonly name: string;
  /** Defaults to the client library's `connect`. */
  readonly open?: (url: string, options: ConnectOptions) => Promise<SkeinClient>;
  /** The events that the client receives. If absent, all events. */
  readonly hears?: readonly string[];
}

/**
 * A client with its own session. It sends numbered messages, retrying each until it is accepted, and receives all their
 * events.
 */
export class Talker {
  readonly name: string;
  readonly key: string;
  /** The accepted messages, keyed by number. */
  readonly acknowledged: number[] = [];
  readonly followed: WireEntry[] = [];
  readonly events: ReceivedEvent[] = [];
  /** Rejections that were retried. */
  readonly refused: CallError[] = [];
  /** Unexpected events. */
  readonly failures: unknown[] = [];
  /** How often a socket for calls was opened. */
  opened = 1;
  readonly #client: SkeinClient;
  readonly #chance: Chance;
  readonly #reading: Promise<unknown>[] = [];
  readonly #answers = new Map<number, PromiseWithResolvers<void>>();

  private constructor(client: SkeinClient, name: string) {
    this.#client = client;
    this.name = name;
    this.#chance = new Chance(runSeed + Buffer.from(name).reduce((sum, byte) => sum * 31 + byte, 0));
    this.key = `agent:main:session:${name}`;
    client.onState((state, error) => {
      if (error !== null) this.failures.push(error);
      if (state !== "open") return;
      this.opened += 1;
    });
  }

  static async connect({
    url,
    name,
    open = connect,
    hears = [],
    ...options
  }: TalkerOptions): Promise<Talker> {
    const talker = new Talker(await open(url, options), name);
    const stream = talker.#client.events({
      keys: [talker.key],
      ...(hears.length === 0 ? {} : { events: hears }),
    });
    talker.#reads(async () => {
      for await (const event of stream) talker.events.push(event);
    });
    await stream.ready;
    return talker;
  }

  get state(): SkeinClient["state"] {
    return this.#client.state;
  }

  /**
   * Sends one message after another until stopped. Before each message, waits for the previous answer and then pauses.
   */
  async talk(isEnough: () => boolean, pauseMs: number): Promise<void> {
    while (!isEnough() && this.state !== "closed") {
      await sleep(pauseMs * this.#chance.next());
      await this.say().catch((error: unknown) => this.failures.push(error));
    }
  }

  /** Waits until the message is answered. */
  async say(): Promise<void> {
    const number = this.acknowledged.length + 1;
    await this.#send(number);
    this.acknowledged.push(number);
    if (number === 1) this.#reads(() => this.#follow());
    await this.#answer(number).promise;
  }

  async close(): Promise<void> {
    await this.#client.close();
    await Promise.all(this.#reading);
  }

  /** Sends the message again under the same key until it is accepted. */
  async #send(number: number): Promise<void> {
    const params = {
      sessionKey: this.key,
      message: saying(this.name, number),
      idempotencyKey: `${this.name}-${number}`,
    };
    for (;;) {
      try {
        await this.#client.call("chat.send", params);
        return;
      } catch (error) {
        if (!(error instanceof CallError) || !error.retryable) throw error;
        this.refused.push(error);
        await sleep(20 + 80 * this.#chance.next());
      }
    }
  }

  #reads(read: () => Promise<void>): void {
    const fail = (error: unknown) => {
      this.failures.push(error);
      for (const { reject } of this.#answers.values()) reject(error);
    };
    this.#reading.push(read().catch(fail));
  }

  async #follow(): Promise<void> {
    for await (const entry of this.#client.follow(this.key)) {
      this.followed.push(entry);
      const number = answered(this.name, entry);
      if (number !== null) this.#answer(number).resolve();
    }
  }

  #answer(number: number): PromiseWithResolvers<void> {
    const known = this.#answers.get(number) ?? Promise.withResolvers<void>();
    this.#answers.set(number, known);
    return known;
  }
}

export function saying(name: string, number: number): string {
  return `${name} says ${number}.`;
}

/** Returns the message that an entry answers. The rehearsal model repeats its input. */
export function answered(name: string, entry: unknown): number | null {
  const { type, message } = entry as { readonly type: string; readonly message?: { readonly role: string } };
  if (type !== "message" || message?.role !== "assistant") return null;
  const found = new RegExp(`“${name} says (\\d+)\\.”`).exec(JSON.stringify(message));
  return found === null ? null : Number(found[1]);
}
