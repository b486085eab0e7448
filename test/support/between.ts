import { refuseAccess, refuseMissing } from "../../src/access/visibility/decide-access.ts";
import { EventBus } from "../../src/core/events.ts";
import type { SessionMeta, SessionRecord } from "../../src/entry-store.ts";
import type { Run } from "../../src/index.ts";
import { displayKey, resolveReference } from "../../src/index.ts";
import type { AcceptRequest, Outcome, ReplyWait } from "../../src/runs/contract.ts";
import type { App } from "../../src/sessions/app.ts";
import { RunWatcher } from "../../src/sessions/run-watcher.ts";
import type { Caller, Denied, Found, SessionAccess } from "../../src/sessions/session-access.ts";
import { createMemoryStore } from "../../src/store/memory/store.ts";
import { fakeApp } from "./fake-app.ts";
import { RunBooks } from "./run-books.ts";

// Sessions that send messages to each other, with a real store and ledger and with small fakes for visibility and
// waits.

export class Between {
  readonly #bus = new EventBus();
  readonly books = new RunBooks({ emit: this.#bus.emit });
  readonly store = createMemoryStore({ clock: { now: () => this.books.now } });
  readonly accepted: AcceptRequest[] = [];
  readonly reports: unknown[] = [];
  readonly deps: App;
  /** Keys that the sender is not allowed to send to. */
  readonly hidden = new Set<string>();
  readonly #waits = new Map<string, { until: number; stopped: boolean }>();
  #calls = 0;

  constructor({
    maxPingPongTurns = 5,
    scope = "per-sender",
  }: { maxPingPongTurns?: number; scope?: string } = {}) {
    const { runs } = this.books;
    const watcher = new RunWatcher(runs, this.#bus);
    this.deps = fakeApp({
      store: this.store,
      access: this.#access(),
      config: { session: { scope, agentToAgent: { maxPingPongTurns } } },
      clock: { now: () => this.books.now },
      owner: "me",
      closed: new AbortController().signal,
      watcher,
      report: (error: unknown) => void this.reports.push(error),
      agents: { find: () => null },
      runs: {
        get: (runId: string, userId?: string | null) => runs.get(runId, userId),
        waits: (runId: string) => runs.waits(runId),
        accept: async (request: AcceptRequest) => {
          const accepted = await runs.accept(request);
          if (!accepted.isNew) return accepted;
          this.accepted.push(request);
          const { awaitedBy } = request;
          if (awaitedBy !== undefined)
            this.#waits.set(accepted.run.runId, { until: awaitedBy.until, stopped: false });
          return accepted;
        },
        replyWait: (runId: string) => this.#waitOf(runId),
        stopAwaiting: async (runId: string) => {
          const wait = await this.#waitOf(runId);
          if (wait?.state === "taken") return "taken";
          this.#waits.set(runId, { until: wait?.until ?? 0, stopped: true });
          return "late";
        },
      },
    });
  }

  session(key: string, meta: SessionMeta = {}, userId = "ann"): Promise<SessionRecord> {
    const agentId = /^agent:([^:]+)/.exec(key)?.[1] ?? "main";
    return this.store.sessions.create({ userId, agentId }, { key, cwd: "/", meta });
  }

  /** A caller that acts for a session, outside a run unless one is given. */
  caller(session: SessionRecord | null, more: Partial<Caller> = {}): Caller {
    return {
      userId: session?.userId ?? "ann",
      agentId: session?.agentId ?? "main",
      session,
      sandboxed: false,
      run: null,
      callId: `call-${++this.#calls}`,
      entryId: null,
      signal: new AbortController().signal,
      whileWaiting: async (_, wait) => ({ entered: true, value: await wait() }),
      ...more,
    };
  }

  /** Ends the next run. */
  async ends(outcome: Outcome): Promise<Run> {
    const claim = await this.books.claim();
    await this.books.runs.end(claim.held, outcome);
    return claim.run;
  }

  async #waitOf(runId: string): Promise<ReplyWait | null> {
    const wait = this.#waits.get(runId);
    if (wait === undefined) return null;
    const { until, stopped } = wait;
    const run = await this.books.runs.get(runId);
    const isOver = run?.outcome != null;
    if (stopped) return { state: "late", until };
    return { state: !isOver ? "open" : (run.endedAt ?? 0) <= until ? "taken" : "late", until };
  }

  #access(): SessionAccess {
    const { sessions } = this.store;
    const find: SessionAccess["find"] = async (asker, reference, action, options): Promise<Found> => {
      const scope = asker.userId === null ? {} : { userId: asker.userId };
      const found =
        options?.label === undefined
          ? await resolveReference(reference, askerOf(asker), (lookup) => sessions.find(scope, lookup))
          : (await sessions.find(scope, { by: "label", label: reference, ...options.label }))[0];
      if (found == null) return { refusal: refuseMissing(reference) };
      const refusal: Denied = refuseAccess("tree_visibility_restricted", action);
      return this.hidden.has(found.key) ? { refusal } : { session: found };
    };
    const unused = () => {
      throw new Error("not asked here");
    };
    return {
      find,
      display: (asker, key) => displayKey(key, askerOf(asker)),
      policyFor: unused,
      check: unused,
      reach: unused,
      explain: unused,
    };
  }
}

function askerOf({ agentId, session }: { agentId: string; session: SessionRecord | null }) {
  return session === null ? { agentId } : { agentId, key: session.key };
}
