import { createRedactor } from "../../src/access/redaction/redactor.ts";
import type { SessionReach, SessionRecord, SessionStore, Store } from "../../src/entry-store.ts";
import type { AccessAction, EntryDraft, Run } from "../../src/index.ts";
import { displayKey, resolveReference } from "../../src/index.ts";
import type { SessionWork } from "../../src/runs/contract.ts";
import type { App } from "../../src/sessions/app.ts";
import type { Caller, Denied, SessionAccess } from "../../src/sessions/session-access.ts";
import { listPage, sortSessions } from "../../src/store/list-query.ts";
import { createMemoryStore } from "../../src/store/memory/store.ts";
import type { SessionTool, ToolResult } from "../../src/tools/session-tool.ts";
import { fakeApp } from "./fake-app.ts";
import { assistantMessage } from "./session-text.ts";

/** The reading tools' dependencies, in memory, with a policy given as the reachable sessions. */

export interface WorldOptions {
  /** For all actions, or for each action separately. */
  readonly reach?: SessionReach | Partial<Record<AccessAction, SessionReach>>;
  readonly sandboxed?: boolean;
  readonly callerKey?: string;
  readonly scope?: "per-sender" | "global";
  readonly work?: ReadonlyMap<string, SessionWork>;
  readonly pending?: readonly Run[];
  readonly secrets?: readonly string[];
  /** Wraps the sessions port. */
  readonly sessions?: (real: SessionStore) => Partial<SessionStore>;
}

export const everything: SessionReach = { treeOf: null, agentIds: "all" };

export interface World {
  readonly store: Store;
  readonly deps: App;
  readonly reported: unknown[];
  now: number;
  create(key: string, meta?: object, drafts?: readonly EntryDraft[]): Promise<SessionRecord>;
  ask(tool: SessionTool, args?: Record<string, unknown>): Promise<ToolResult>;
}

export function readingWorld(options: WorldOptions = {}): World {
  const { sandboxed = false, callerKey = "agent:main:main", scope = "per-sender" } = options;
  const world = { now: 1_000_000_000 };
  const clock = { now: () => world.now };
  const memory = createMemoryStore({ clock });
  const sessions = { ...reachable(memory.sessions), ...options.sessions?.(memory.sessions) };
  const reported: unknown[] = [];
  const store: Store = {
    ...memory,
    sessions: fallingBack(sessions, memory.sessions),
    search: {
      search: async (where, { reach, limit = 10, ...query }) => {
        const found = await memory.search.search(where, { ...query, limit: 50 });
        const reached = await keysWithin(memory.sessions, where, reach);
        return { ...found, hits: found.hits.filter((hit) => reached(hit.key)).slice(0, limit) };
      },
    },
  };
  const access = accessDouble(memory.sessions, options);
  const workingSets = (sessions: readonly SessionRecord[]) =>
    new Map(sessions.map(({ uid, sessionId }) => [uid, `/sessions/${sessionId}.jsonl`]));
  const deps = fakeApp({
    store: { ...store, upkeep: { workingSets } },
    access,
    clock,
    redactor: createRedactor({ secrets: options.secrets ?? [] }),
    config: { session: { scope }, tools: { sessions: { showPaths: true } } },
    runs: {
      work: async (uids: readonly string[]) =>
        new Map(uids.map((uid) => [uid, options.work?.get(uid) ?? nothingRan])),
      pending: async () => options.pending ?? [],
    },
    report: (error: unknown) => void reported.push(error),
  });
  return Object.assign(world, {
    store,
    deps,
    reported,
    async create(key: string, meta: object = {}, drafts: readonly EntryDraft[] = []) {
      world.now += 1000;
      const made = await memory.sessions.create({}, { key, cwd: "/w", meta: { ...meta } });
      if (drafts.length > 0)
        await memory.sessions.append(
          {},
          made.sessionId,
          drafts.map((draft) => ({ draft })),
        );
      return (await memory.sessions.get({}, made.sessionId)) ?? made;
    },
    async ask(tool: SessionTool, args: Record<string, unknown> = {}) {
      const [session = null] = await memory.sessions.find({}, { by: "key", key: callerKey });
      const call = { userId: null, agentId: "main", session, sandboxed, run: null } as unknown as Caller;
      return (await tool.execute(args, call, deps)).result;
    },
  });
}

const nothingRan: SessionWork = {
  ...{ status: "idle", startedAt: null, endedAt: null, runId: null },
  ...{ queued: 0, approvals: 0 },
};

export function said(text: string, role: "user" | "assistant" = "user"): EntryDraft {
  return role === "user"
    ? { type: "message", message: { role, content: text } }
    : { type: "message", message: assistantMessage(text) };
}

export function called(id: string, args: Record<string, unknown> = {}): EntryDraft[] {
  return [
    {
      type: "message",
      message: {
        ...assistantMessage(""),
        content: [{ type: "toolCall", id, name: "read", arguments: args }],
        stopReason: "toolUse",
      },
    },
    {
      type: "message",
      message: {
        role: "toolResult",
        toolCallId: id,
        toolName: "read",
        content: [{ type: "text", text: `result of ${id}` }],
        isError: false,
      },
    },
  ];
}

function accessDouble(sessions: SessionStore, { reach, sandboxed = false }: WorldOptions): SessionAccess {
  const reachOf = (action: AccessAction): SessionReach =>
    reach === undefined ? everything : "agentIds" in reach ? reach : (reach[action] ?? everything);
  const check: SessionAccess["check"] = async (_asker, session, action) =>
    (await keysWithin(sessions, {}, reachOf(action)))(session.key) ? null : refused;
  const asWritten = (agentId: string, key: string | undefined) => ({
    agentId,
    ...(key === undefined ? {} : { key }),
  });
  const mode = "tree" as const;
  return {
    policyFor: () => ({
      visibility: { list: mode, history: mode, send: mode, status: mode },
      agentToAgent: { enabled: false, allow: { entries: [] } as never },
      sandboxed,
    }),
    reach: async (_asker, action) => reachOf(action),
    check,
    async find(asker, reference, action) {
      const who = asWritten(asker.agentId, asker.session?.key);
      const session = await resolveReference(reference, who, (lookup) => sessions.find({}, lookup));
      if (session === null) return { refusal: { ...refused, status: "error", code: "not_found" } };
      const refusal = await check(asker, session, action);
      return refusal === null ? { session } : { refusal };
    },
    explain: () => Promise.reject(new Error("not asked for")),
    display: (asker, key) => displayKey(key, asWritten(asker.agentId, asker.session?.key)),
  };
}

const refused: Denied = {
  allowed: false,
  status: "forbidden",
  code: "tree_visibility_restricted",
  error: "refused",
  retryable: false,
};

/** Lists and counts within a reach, regardless of what the store itself supports. */
function reachable(real: SessionStore): Pick<SessionStore, "list" | "count"> {
  const all = async (
    scope: object,
    { reach, cursor: _cursor, ...query }: { reach?: SessionReach; cursor?: string },
  ) => {
    const { sessions } = await real.list(scope, { ...query, limit: 1000 });
    const within = await keysWithin(real, scope, reach);
    return sessions.filter(({ key }) => within(key));
  };
  return {
    async list(scope, query) {
      return listPage(sortSessions(await all(scope, query), query), query.limit ?? 100, 0);
    },
    count: async (scope, query) => (await all(scope, query)).length,
  };
}

async function keysWithin(
  sessions: SessionStore,
  _scope: object,
  reach: SessionReach | undefined,
): Promise<(key: string) => boolean> {
  if (reach === undefined || reach.agentIds === "all") return () => true;
  const pages = await Promise.all(
    [false, true].map((archived) => sessions.list({}, { archived, limit: 1000 })),
  );
  const kin = pages.flatMap((page) => page.sessions);
  const tree = new Set(reach.treeOf === null ? [] : [reach.treeOf]);
  if (reach.descendants !== false)
    for (const parent of tree) for (const each of kin) if (each.meta.spawnedBy === parent) tree.add(each.key);
  const ofAgents = kin.filter(({ agentId }) => reach.agentIds.includes(agentId)).map(({ key }) => key);
  const keys = new Set([...tree, ...ofAgents]);
  return (key) => keys.has(key);
}

function fallingBack<T extends object>(first: Partial<T>, second: T): T {
  return new Proxy(second, {
    get: (target, name) => Reflect.get(first, name) ?? Reflect.get(target, name),
  });
}
