import { realpath } from "node:fs/promises";
import { SkeinError } from "../core/errors.ts";
import type { EventBus } from "../core/events.ts";
import { present } from "../core/present.ts";
import type { Child } from "../runs/contract.ts";
import type { Scope } from "../store/contract.ts";
import type { App } from "./app.ts";
import { removeAttachments } from "./attachment-files.ts";

/** Trashes or archives expired children and removes their attachments. */
export class ChildKeeper {
  readonly #app: Pick<App, "store" | "runs" | "files" | "report">;

  constructor(app: Pick<App, "store" | "runs" | "files" | "report">) {
    this.#app = app;
  }

  /** Handles all children that are due. If one fails, it stays due and does not affect the others. */
  async tidy(): Promise<void> {
    for (const { child, act } of await this.#app.runs.childrenToTidy()) {
      try {
        await this.#tidyOne(child, act);
      } catch (error) {
        this.#app.report(error);
      }
    }
  }

  /**
   * Marks the child as tidied last. If the process crashes before that, the child is due again, and repeating a step is
   * harmless.
   */
  async #tidyOne({ run, attachments }: Child, act: "remove" | "archive"): Promise<void> {
    const { userId, agentId, sessionId } = run.session;
    const { sessions } = this.#app.store;
    const scope: Scope = present({ userId });
    if (act === "remove") await sessions.remove(scope, sessionId);
    else await this.#archive(scope, sessionId);
    if (attachments !== undefined) {
      const own = this.#app.files.attachments({ userId, agentId, sessionId });
      await removeAttachments(attachments, own !== null && (await isSameFolder(attachments, own)));
    }
    await this.#app.runs.markTidied(run.runId);
  }

  async #archive(scope: Scope, sessionId: string): Promise<void> {
    const { sessions } = this.#app.store;
    const session = await sessions.get(scope, sessionId);
    if (session === null || session.meta.archived === true) return;
    await sessions.patch(scope, sessionId, { archived: true }).catch((error: unknown) => {
      // The session has since been removed.
      if (!(error instanceof SkeinError) || error.code !== "not_found") throw error;
    });
  }
}

/**
 * Whether two paths name the same folder. The recorded path is a real path, but the store's path can contain a link.
 */
async function isSameFolder(path: string, other: string): Promise<boolean> {
  if (path === other) return true;
  const [real, otherReal] = await Promise.all(
    [path, other].map((each) => realpath(each).catch(() => null)), // A missing folder equals nothing.
  );
  return real !== null && real === otherReal;
}

/** How often to check for expired children. */
const everyMs = 60_000;
/**
 * The delay after a run ends. It batches runs that end at about the same time, because each pass reads all children
 * that have not been tidied yet.
 */
const soonMs = 250;

/** Tidies children soon after a run ends, once a minute, and before closing. */
export class Tidying {
  readonly #keeper: ChildKeeper;
  readonly #bus: EventBus;
  readonly #report: (error: unknown) => void;
  #stop: (() => void) | null = null;
  #soon: NodeJS.Timeout | null = null;
  #looking: Promise<void> = Promise.resolve();

  constructor(keeper: ChildKeeper, bus: EventBus, report: (error: unknown) => void) {
    this.#keeper = keeper;
    this.#bus = bus;
    this.#report = report;
  }

  start(): void {
    const timer = setInterval(() => this.#look(), everyMs).unref();
    const leave = this.#bus.subscribe(({ type }) => void (type === "run.ended" && this.#lookSoon()));
    this.#stop = () => {
      clearInterval(timer);
      leave();
    };
    this.#look();
  }

  /** Finishes pending work before it stops. */
  async close(): Promise<void> {
    if (this.#stop === null) return;
    this.#stop();
    this.#stop = null;
    if (this.#soon !== null) this.#look();
    await this.#looking;
  }

  #lookSoon(): void {
    this.#soon ??= setTimeout(() => this.#look(), soonMs).unref();
  }

  #look(): void {
    if (this.#soon !== null) clearTimeout(this.#soon);
    this.#soon = null;
    this.#looking = this.#looking.then(() => this.#keeper.tidy()).catch(this.#report);
  }
}
