import type { AccessSettings } from "../../src/access/visibility/access-policy.ts";
import { resolveAccessPolicy } from "../../src/access/visibility/access-policy.ts";
import { createTreeCheck, explainAccess } from "../../src/access/visibility/decide-access.ts";
import { sessionRefOf } from "../../src/core/session-ref.ts";
import type { SessionMeta, SessionRecord } from "../../src/entry-store.ts";
import type { Lookup, Run } from "../../src/index.ts";
import { displayKey } from "../../src/index.ts";
import type { AcceptRequest, Child, RunStore, SessionWork } from "../../src/runs/contract.ts";
import type { Agent } from "../../src/sessions/agents.ts";
import type { App } from "../../src/sessions/app.ts";
import type { Asker, Caller, SessionAccess } from "../../src/sessions/session-access.ts";
import { createMemoryStore } from "../../src/store/memory/store.ts";
import { fakeApp } from "./fake-app.ts";
import { RunBooks } from "./run-books.ts";

/** Sessions in a memory store and runs in a real ledger, with small fakes for session lookups and activity counts. */

const open = ["queued", "running", "waiting", "sleeping"] as const;

export const noLimits = {
  allowAgents: [] as readonly string[],
  maxSpawnDepth: 1,
  maxChildren: 5,
  archiveAfterMinutes: 60,
  tools: { allow: [], deny: [] },
  attachments: { maxFileBytes: 1, maxTotalBytes: 1, keep: false },
};

export function agentNamed(id: string, also: Partial<Agent> = {}): Agent {
  const nothing = { onDemand: [], cwd: null, sandboxed: false, roots: [], tools: { deny: [] } };
  return { id, model: "rehearsal/basic", ...nothing, subagents: noLimits, ...also } as Agent;
}

/** A predictable spawn ID for tests. */
export function spawnIdOf(name: string): string {
  return `00000000-0000-4000-8000-${Buffer.from(name.padEnd(6, " ").slice(0, 6)).toString("hex")}`;
}

export class WatchingWorld {
  readonly books = new RunBooks();
  readonly store = createMemoryStore({ clock: { now: () => this.books.now } });
  readonly agents = new Map<string, Agent>([["main", agentNamed("main")]]);
  readonly offered = new Map<string, readonly string[]>([["main", ["read", "session_status"]]]);
  settings: AccessSettings = {
    tools: { sessions: { visibility: "tree" }, agentToAgent: { enabled: false, allow: [] } },
    agents: {},
  };
  readonly #children: (Omit<Child, "run"> & { readonly runId: string })[] = [];

  async session(key: string, meta: SessionMeta = {}, userId = "ann"): Promise<SessionRecord> {
    const scope = { userId, agentId: key.split(":")[1] ?? "main" };
    return this.store.sessions.create(scope, { key, cwd: "/work", meta });
  }

  async accept(session: SessionRecord, request: Partial<AcceptRequest> = {}): Promise<Run> {
    return this.books.accept("", { session: sessionRefOf(session), ...request });
  }

  /** Accepts and claims input. Nothing else can be claimable. */
  async running(session: SessionRecord, request: Partial<AcceptRequest> = {}): Promise<Run> {
    const { runId } = await this.accept(session, request);
    const claim = await this.books.claim();
    if (claim.run.runId !== runId) throw new Error("another run was claimed");
    return claim.run;
  }

  /** A spawned session with its first run, which is queued. */
  async spawn(
    parent: SessionRecord,
    name: string,
    also: { by?: Run; label?: string; task?: string; acp?: string } = {},
  ) {
    const { userId, agentId, key: parentKey } = parent;
    const spawnId = spawnIdOf(name);
    const meta = { spawnedBy: parentKey, ...(also.label === undefined ? {} : { label: also.label }) };
    const session = await this.session(
      also.acp === undefined
        ? `agent:${agentId}:subagent:${parent.sessionId}:${spawnId}`
        : `agent:${also.acp}:acp:${spawnId}`,
      meta,
      userId ?? undefined,
    );
    const startedBy = also.by === undefined ? {} : { startedBy: also.by.runId, root: also.by.root };
    const run = await this.accept(session, { kind: "spawn", ...startedBy });
    const task = also.task ?? "Look it up";
    const label = also.label === undefined ? {} : { label: also.label };
    const child = { parentKey, spawnId, task, mode: "run", cleanup: "keep", tidiedAt: null } as const;
    this.#children.unshift({ ...child, ...label, runId: run.runId });
    return { session, run };
  }

  /** The caller, either during a run or outside one. */
  caller(session: SessionRecord, run: Run | null = null, also: Partial<Caller> = {}): Caller {
    return {
      userId: session.userId,
      agentId: session.agentId,
      session,
      sandboxed: session.meta.sandboxed === true,
      run,
      callId: "call-1",
      entryId: null,
      signal: new AbortController().signal,
      whileWaiting: async (_, wait) => ({ entered: true, value: await wait() }),
      ...also,
    };
  }

  get runs(): RunStore {
    const { runs } = this.books;
    const double: Partial<RunStore> = {
      accept: (request) => runs.accept(request),
      get: (runId, userId) => runs.get(runId, userId),
      list: (query, userId) => runs.list(query, userId),
      waits: (runId) => runs.waits(runId),
      pending: (uid) => runs.pending(uid),
      abort: (runId, reason) => runs.abort(runId, reason),
      work: async (uids) =>
        new Map(await Promise.all(uids.map(async (uid) => [uid, await this.#work(uid)] as const))),
      children: async (_, parentKey) => {
        const own = this.#children.filter((child) => child.parentKey === parentKey);
        return Promise.all(
          own.map(async ({ runId, ...child }) => ({ ...child, run: await this.run(runId) })),
        );
      },
    };
    return double as RunStore;
  }

  async run(runId: string): Promise<Run> {
    const run = await this.books.runs.get(runId);
    if (run === null) throw new Error(`no run ${runId}`);
    return run;
  }

  async #work(uid: string): Promise<SessionWork> {
    const runs = await this.books.runs.list({ sessionUid: uid, limit: 1000 });
    const [first] = ["running", "waiting", "sleeping", "queued"].flatMap((state) =>
      runs.filter((run) => run.state === state),
    );
    const queued = runs.filter(({ state }) => state === "queued").length - Number(first?.state === "queued");
    const startedAt = runs.at(-1)?.startedAt ?? null;
    if (first === undefined) {
      const state = runs[0]?.state ?? "ok";
      const status = state === "error" || state === "timeout" || state === "aborted" ? state : "idle";
      return { status, startedAt, endedAt: runs[0]?.endedAt ?? null, runId: null, queued: 0, approvals: 0 };
    }
    const status = first.state === "sleeping" ? "waiting" : (first.state as "queued" | "running" | "waiting");
    return { status, startedAt, endedAt: null, runId: first.runId, queued, approvals: 0 };
  }

  get access(): SessionAccess {
    const policyFor = (asker: Asker) => resolveAccessPolicy(this.settings, asker);
    const double: Partial<SessionAccess> = {
      policyFor,
      display: ({ agentId }, key) => displayKey(key, { agentId }),
      find: async (asker, reference, action) => {
        const { userId, agentId } = asker;
        const session = await this.#find(userId, agentId, reference);
        const target = session === null ? null : { ...session, spawnedBy: session.meta.spawnedBy ?? null };
        const isInTree = createTreeCheck(
          async (key) => (await this.#find(userId, agentId, key))?.meta.spawnedBy ?? null,
        );
        const who = { userId, agentId, key: asker.session?.key ?? null };
        const { decision } = await explainAccess(who, target, action, policyFor(asker), {
          reference,
          isInTree,
        });
        if (!decision.allowed) return { refusal: decision };
        return session === null ? Promise.reject(new Error("allowed without a session")) : { session };
      },
    };
    return double as SessionAccess;
  }

  async #find(userId: string | null, agentId: string, reference: string): Promise<SessionRecord | null> {
    const lookups: Lookup[] = [{ by: "key", key: reference }];
    if (reference.startsWith("subagent:")) lookups.push({ by: "spawnId", spawnId: reference.slice(9) });
    lookups.push({ by: "label", label: reference, agentId });
    for (const lookup of lookups) {
      const [found] = await this.store.sessions.find(userId === null ? {} : { userId }, lookup);
      if (found !== undefined) return found;
    }
    return null;
  }

  get deps(): App {
    const { agents, store } = this;
    const locate = async (_: string | null, key: string) => this.#sessions.get(key) ?? null;
    return fakeApp({
      store: { ...store, work: { locate } },
      runs: this.runs,
      access: this.access,
      agents: { ids: [...agents.keys()], find: (agentId: string) => agents.get(agentId) ?? null },
      acp: { names: this.acpNames, defaultAgent: null, untilAgentSessionId: async () => null },
      clock: { now: () => this.books.now },
      watcher: { untilEnded: async (runId: string) => this.run(runId) },
      tools: {
        of: async ({ id }: Agent) => (this.offered.get(id) ?? []).map((name) => ({ name, groups: [] })),
      },
      models: {
        turnModel: (name: string) => {
          if (name !== "rehearsal/basic") throw new Error("no such model");
          return { info: { contextWindow: 1000 }, policy };
        },
      },
    });
  }

  /** ACP agents that can be spawned. */
  acpNames: readonly string[] = [];

  readonly #sessions = new Map<string, ReturnType<typeof sessionRefOf>>();

  /** Sessions that can be looked up directly by their keys. */
  known(...sessions: readonly SessionRecord[]): void {
    for (const session of sessions) this.#sessions.set(session.key, sessionRefOf(session));
  }

  /** Everything that is open in a session. */
  async open(session: SessionRecord): Promise<readonly Run[]> {
    return this.books.runs.list({ sessionUid: session.uid, states: open });
  }
}

const policy = {
  provider: "rehearsal",
  api: "openai-completions",
  toolCallIds: "strict",
  turns: "any",
  thinking: "none",
  images: null,
};
