import { setTimeout as after } from "node:timers/promises";
import type pg from "pg";

const channel = "skein_runs";
/** At most one notification is sent in this time, because each one wakes every process. */
const notifyEveryMs = 20;
/** Notifications can be lost with a connection, so processes also look on their own. */
const lookEveryMs = 1000;
const longestPauseMs = 5000;

export interface WakeUpOptions {
  connect(): Promise<pg.Client>;
  /** Distinguishes this process from the others. */
  readonly name: string;
  /** Called before the other processes are woken. Must not reject. */
  beforeNotify(): Promise<void>;
  /** Called before the listeners. Must not reject. */
  beforeWake(): Promise<void>;
  /** Called with the errors of listeners. */
  report(error: unknown): void;
}

/**
 * Lets the processes on one database notice each other's changes. It uses a connection of its own, because a connection
 * from PgBouncer in transaction mode cannot listen.
 */
export class WakeUps {
  readonly #options: WakeUpOptions;
  readonly #listeners = new Set<() => void>();
  readonly #closed = new AbortController();
  readonly #looking: NodeJS.Timeout;
  #client: pg.Client | null = null;
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
      // If the connection is lost, the others find the change when they look on their own.
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

  /** Listens until it is closed. Connects again after the connection is lost. */
  async #listen(): Promise<void> {
    const { signal } = this.#closed;
    for (let pauseMs = 100; !signal.aborted; pauseMs = Math.min(longestPauseMs, 2 * pauseMs)) {
      const hasListened = await this.#listenOnce().catch(() => false);
      if (hasListened) pauseMs = 100;
      if (!signal.aborted) await after(pauseMs, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  /** Resolves when the connection ends. Returns whether it has listened. */
  async #listenOnce(): Promise<boolean> {
    const client = await this.#options.connect();
    const ended = new Promise<void>((resolve) => void client.once("end", resolve));
    client.on("error", () => undefined);
    client.on("notification", ({ payload }) => {
      if (payload !== this.#options.name) this.#wake();
    });
    try {
      await client.query(`LISTEN ${channel}`);
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    if (this.#closed.signal.aborted) await client.end();
    this.#client = client;
    // Changes before this moment were not announced to this connection.
    this.#wake();
    await ended;
    this.#client = null;
    return true;
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
