import { setTimeout as after } from "node:timers/promises";
import { SkeinError } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";
import type { DirectConnection } from "./direct-connection.ts";
import { isPooled } from "./direct-connection.ts";

const channel = "skein_runs";
/** At most one notification is sent in this time, because each one wakes every process. */
const notifyEveryMs = 20;
/** Notifications can be lost with a connection, so processes also poll. */
const lookEveryMs = 1000;
const longestPauseMs = 5000;

export interface WakeUpOptions {
  connect(): Promise<DirectConnection>;
  /** Whether the database answers on other connections. Must not reject. */
  answers(): Promise<boolean>;
  /** Distinguishes this process from the others. */
  readonly name: string;
  /** Called before the other processes are woken. Must not reject. */
  beforeNotify(): Promise<void>;
  /** Called before the listeners. Must not reject. */
  beforeWake(): Promise<void>;
  /**
   * Called with errors from listeners. Also called, once per outage, if this connection fails while the database
   * answers.
   */
  report(error: unknown): void;
}

/**
 * Lets the processes on one database notice each other's changes. It uses its own connection, because a connection
 * through PgBouncer in transaction mode receives no notifications.
 */
export class WakeUps {
  readonly #options: WakeUpOptions;
  readonly #listeners = new Set<() => void>();
  readonly #closed = new AbortController();
  readonly #looking: NodeJS.Timeout;
  #client: DirectConnection | null = null;
  #hasReported = false;
  #notifying: NodeJS.Timeout | null = null;
  #isNotifying = false;
  #mustNotifyAgain = false;
  #waking: Promise<void> | null = null;
  #mustWakeAgain = false;
  #version = 0;

  constructor(options: WakeUpOptions) {
    this.#options = options;
    this.#looking = setInterval(() => this.#wake(), lookEveryMs).unref();
    void this.#listen();
  }

  /** Changes when another process might have written. */
  get version(): number {
    return this.#version;
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Wakes the other processes soon. */
  announce(): void {
    if (this.#notifying !== null) return;
    this.#notifying = setTimeout(() => void this.#notify(), notifyEveryMs).unref();
  }

  async #notify(): Promise<void> {
    this.#notifying = null;
    await this.#options.beforeNotify();
    this.#mustNotifyAgain = true;
    if (this.#isNotifying) return;
    this.#isNotifying = true;
    while (this.#mustNotifyAgain) {
      this.#mustNotifyAgain = false;
      // If the connection is lost, other processes find the change when they poll.
      await this.#client
        ?.query("SELECT pg_notify($1, $2)", [channel, this.#options.name])
        .catch(() => undefined);
    }
    this.#isNotifying = false;
  }

  async close(): Promise<void> {
    this.#closed.abort();
    clearInterval(this.#looking);
    if (this.#notifying !== null) clearTimeout(this.#notifying);
    await this.#waking;
    await this.#client?.end().catch(() => undefined);
  }

  /** Listens for notifications until `close`. Reconnects after the connection is lost. */
  async #listen(): Promise<void> {
    const { signal } = this.#closed;
    // If the database did not answer at all, this connection is not the problem, and nothing is reported.
    let isAnswering = false;
    for (let pauseMs = 100; !signal.aborted; pauseMs = Math.min(longestPauseMs, 2 * pauseMs)) {
      try {
        await this.#listenOnce();
        pauseMs = 100;
      } catch (error) {
        if (isAnswering) this.#warn(`fails (${thrownText(error)})`);
      }
      if (!signal.aborted) await after(pauseMs, undefined, { ref: false, signal }).catch(() => undefined);
      if (!signal.aborted) isAnswering = await this.#options.answers();
    }
  }

  #warn(problem: string): void {
    if (this.#hasReported || this.#closed.signal.aborted) return;
    this.#hasReported = true;
    this.#options.report(
      new SkeinError("unavailable", {
        problem: `The connection for notifications from other processes ${problem}`,
        advice:
          "Their changes are noticed within a second. To notice them at once, set postgres.directUrl to the address of the PostgreSQL server itself",
      }),
    );
  }

  /** Resolves when the connection ends. Throws if it could not listen. */
  async #listenOnce(): Promise<void> {
    const client = await this.#options.connect();
    const ended = new Promise<void>((resolve) => void client.once("end", resolve));
    client.on("notification", ({ payload }) => {
      if (payload !== this.#options.name) this.#wake();
    });
    let isThroughPooler: boolean;
    try {
      isThroughPooler = await isPooled(client);
      await client.query(`LISTEN ${channel}`);
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    if (this.#closed.signal.aborted) await client.end();
    this.#client = client;
    if (isThroughPooler) this.#warn("goes through a pooler, which delivers none in transaction mode");
    this.#hasReported = isThroughPooler;
    // Changes before this moment were not announced to this connection.
    this.#wake();
    await ended;
    this.#client = null;
  }

  /** A call during a wake-up causes another one, because the first might have looked too early. */
  #wake(): void {
    this.#mustWakeAgain = true;
    this.#waking ??= this.#wakeWhileNeeded().finally(() => {
      this.#waking = null;
    });
  }

  #tell(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.#options.report(error);
    }
  }

  async #wakeWhileNeeded(): Promise<void> {
    while (this.#mustWakeAgain && !this.#closed.signal.aborted) {
      this.#mustWakeAgain = false;
      await this.#options.beforeWake();
      this.#version += 1;
      for (const listener of this.#listeners) this.#tell(listener);
    }
  }
}
