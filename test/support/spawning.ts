import { present } from "../../src/core/present.ts";
import type { SqlDatabase } from "../../src/core/script.ts";
import { changeOn, valueScript } from "../../src/core/script.ts";
import { sessionRefOf } from "../../src/core/session-ref.ts";
import type { SessionMeta, SessionRecord, Store } from "../../src/entry-store.ts";
import type { Channel, Run } from "../../src/index.ts";
import { HookRegistry, SkeinError } from "../../src/index.ts";
import type { AcceptRequest, Child, RunStore } from "../../src/runs/contract.ts";
import type { Agent, SubagentPolicy } from "../../src/sessions/agents.ts";
import type { App } from "../../src/sessions/app.ts";
import type { Spawner } from "../../src/sessions/spawn-checks.ts";
import type { SpawnRequest } from "../../src/sessions/spawn-request.ts";
import { createMemoryLedger, createMemoryStore } from "../../src/store/memory/store.ts";
import { fakeApp } from "./fake-app.ts";
import { fileBoundary } from "./file-boundary.ts";

/** An in-memory run ledger with only what spawning needs. */
export class SpawnBooks {
  readonly runs = new Map<string, Run>();
  readonly requests: AcceptRequest[] = [];
  readonly threads = new Map<string, string>();
  readonly waits = new Map<string, "open" | "taken" | "late">();
  /** Called before a run is accepted. */
  onAccept: (request: AcceptRequest) => void = () => undefined;
  overBudget = false;
  due: { readonly child: Child; readonly act: "remove" | "archive" }[] = [];
  readonly tidied: string[] = [];

  get store(): RunStore {
    const accept = (request: AcceptRequest) => this.#accept(request);
    const double = {
      get: async (runId: string) => this.runs.get(runId) ?? null,
      accept: async (request: AcceptRequest) => accept(request),
      acceptWithin: (request: AcceptRequest) =>
        valueScript({ accepted: accept(request), afterCommit: () => undefined }),
      list: async ({ sessionUid }: { sessionUid: string }) =>
        [...this.runs.values()].filter(({ session }) => session.uid === sessionUid),
      checkBudget: async ({ rootId }: { rootId: string }) => {
        if (this.overBudget) {
          throw new SkeinError("budget_exceeded", { rootId, limit: "runs", figure: 101, allowed: 100 });
        }
      },
      children: async () =>
        [...this.runs.values()].filter(({ kind, state }) => kind === "spawn" && state === "queued"),
      replyWait: async (runId: string) => {
        const state = this.waits.get(runId);
        return state === undefined ? null : { state, until: 0 };
      },
      stopAwaiting: async (runId: string) => {
        const state = this.waits.get(runId) === "taken" ? "taken" : "late";
        this.waits.set(runId, state);
        return state;
      },
      bindThread: async (
        _: string | null,
        { channel, threadId }: { channel: string; threadId: string },
        key: string,
      ) => void this.threads.set(`${channel}/${threadId}`, key),
      childrenToTidy: async () => this.due,
      markTidied: async (runId: string) => void this.tidied.push(runId),
    };
    return double as unknown as RunStore;
  }

  end(runId: string, reply: string): Run {
    const run = this.runs.get(runId);
    if (run === undefined) throw new Error(`no run ${runId}`);
    const ended = { ...run, state: "ok", outcome: { state: "ok", reply } } as Run;
    this.runs.set(runId, ended);
    if (this.waits.get(runId) === "open") this.waits.set(runId, "taken");
    return ended;
  }

  #accept(request: AcceptRequest) {
    const { runId = "", session, kind, message, options = {}, root, startedBy = null } = request;
    const known = this.runs.get(runId);
    if (known !== undefined) return { run: known, isNew: false };
    this.onAccept(request);
    this.requests.push(request);
    const run = {
      runId,
      session,
      kind,
      message,
      options,
      root,
      startedBy,
      state: "queued",
      outcome: null,
      usage: {},
    };
    this.runs.set(runId, run as unknown as Run);
    if (request.awaitedBy !== undefined) this.waits.set(runId, "open");
    return { run: run as unknown as Run, isNew: true };
  }
}

export const subagents: SubagentPolicy = {
  allowAgents: [],
  maxSpawnDepth: 2,
  maxChildren: 2,
  archiveAfterMinutes: 60,
  tools: { allow: [], deny: [] },
  attachments: { maxFileBytes: 100, maxTotalBytes: 150, keep: false },
};

export function agentPolicy(id: string, more: Partial<Agent> = {}): Agent {
  return {
    id,
    model: "rehearsal/basic",
    cwd: null,
    sandboxed: false,
    roots: [],
    tools: { deny: [] },
    subagents,
    ...more,
  } as Agent;
}

export interface SpawnGround {
  readonly deps: App;
  readonly books: SpawnBooks;
  readonly store: Store;
  readonly reported: unknown[];
  caller(meta?: SessionMeta, more?: Partial<Spawner>): Promise<Spawner>;
}

/**
 * A store, a ledger and agents for spawning. The folder is the parents' working directory. The database is that of the
 * runs in `more`.
 */
export function spawnGround(
  folder: string,
  agents: readonly Agent[] = [agentPolicy("main")],
  more: Parameters<typeof fakeApp>[0] = {},
  database: SqlDatabase = createMemoryLedger(),
): SpawnGround {
  const books = new SpawnBooks();
  const store = createMemoryStore();
  const reported: unknown[] = [];
  const create: App["store"]["work"]["create"] = async (scope, init, act) => {
    const made = await store.sessions.create(scope, init);
    try {
      changeOn(database, "synced", act(sessionRefOf(made)))();
      return made;
    } catch (error) {
      await store.sessions.remove(scope, made.sessionId);
      await store.sessions.purge(scope, made.sessionId);
      throw error;
    }
  };
  const deps = fakeApp({
    store: { ...store, work: { ...store.work, create } },
    runs: books.store,
    agents: {
      ids: agents.map(({ id }) => id),
      find: (id: string) => agents.find((each) => each.id === id) ?? null,
    },
    access: {
      policyFor: ({ sandboxed }: Spawner) => ({ sandboxed, visibility: { list: "tree" } }),
    },
    acp: { names: [], defaultAgent: null, untilAgentSessionId: async () => null },
    channels: new Map(),
    clock: { now: () => 1000 },
    owner: "here",
    watcher: { untilEnded: async (runId: string) => books.end(runId, "done") },
    models: { turnModel: () => ({ info: {} }), check: () => undefined },
    files: fileBoundary({
      attachments: (_, agentId, sessionId) => `${folder}/store/${agentId}/attachments/${sessionId}`,
      agent: (id) => agents.find((each) => each.id === id) ?? { cwd: null, roots: [] },
    }),
    hooks: new HookRegistry(),
    tools: { ungranted: async () => ({ unknown: [], denied: [] }) },
    report: (error: unknown) => reported.push(error),
    ...more,
  });
  return {
    deps,
    books,
    store,
    reported,
    caller: async (meta = {}, given = {}) => {
      const session = await parentOf(store, folder, meta);
      return {
        userId: null,
        agentId: "main",
        session,
        sandboxed: false,
        run: null,
        callId: "call-1",
        entryId: null,
        signal: new AbortController().signal,
        whileWaiting: async (_, wait) => ({ entered: true, value: await wait() }),
        ...given,
      };
    },
  };
}

async function parentOf(store: Store, cwd: string, meta: SessionMeta): Promise<SessionRecord> {
  const key = "agent:main:main";
  const [known] = await store.sessions.find({}, { by: "key", key });
  return known ?? store.sessions.create({ agentId: "main" }, { key, cwd, meta });
}

/** A request with all defaults. */
export function wish(more: Partial<SpawnRequest> = {}): SpawnRequest {
  return {
    task: "Count the pages",
    runtime: "subagent",
    thread: false,
    mode: "run",
    cleanup: "keep",
    sandbox: "inherit",
    background: true,
    context: "isolated",
    attachments: [],
    ...more,
  };
}

/** Channels that all open threads in this way. */
export function threadChannels(openThread: NonNullable<Channel["openThread"]> | null): App["channels"] {
  const channel = { ...present({ openThread }) } as unknown as Channel;
  return { get: () => channel } as unknown as App["channels"];
}
