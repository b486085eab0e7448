import type { MethodName, Params } from "../../src/entry-client.ts";
import type { WireErrorCode } from "../../src/protocol/errors.ts";
import type { Via } from "./walk-calls.ts";
import type { WalkWorld } from "./walk-world.ts";

/** A valid call to every method, for Ann's data. */

export interface WalkRow<M extends MethodName> {
  good(world: WalkWorld, via: Via): Params<M>;
  /** The params that others send. If absent, the same params. */
  others?(world: WalkWorld, via: Via): Params<M>;
  /** The expected response to others. `ok` means a response about their own space, without Ann's data. */
  readonly told: "ok" | WireErrorCode;
}

type WalkTable = { readonly [M in MethodName]: WalkRow<M> };

const shadow = (what: string, via: Via) => `agent:main:session:shadow-${what}-${via}`;
/** Ann's own idempotency key. No other user has it. */
const once = "ann-secret-41-once";

const reading = {
  "sessions.list": { good: () => ({ limit: 100 }), told: "ok" },
  "sessions.get": { good: ({ key }) => ({ key }), told: "not_found" },
  "sessions.resolve": { good: ({ label }) => ({ label }), told: "not_found" },
  "sessions.preview": { good: ({ key }) => ({ keys: [key] }), told: "ok" },
  "sessions.tree": { good: ({ key }) => ({ key }), told: "not_found" },
  "sessions.entries": {
    good: ({ key, secondId }) => ({ key, along: "all", after: secondId }),
    told: "not_found",
  },
  "sessions.usage": { good: ({ key }) => ({ key, by: ["day", "model"] }), told: "not_found" },
  "sessions.search": { good: ({ key }) => ({ key, query: "wanted" }), told: "not_found" },
  "sessions.context": {
    good: ({ key }) => ({ key, model: "anthropic/claude-sonnet-4-5" }),
    told: "not_found",
  },
  "sessions.family": { good: ({ busy }) => ({ key: busy }), told: "not_found" },
  "sessions.export": { good: ({ sessionId }) => ({ key: sessionId, format: "md" }), told: "not_found" },
  "sessions.trash": { good: () => ({}), told: "ok" },
  "sessions.subscribe": { good: ({ key }) => ({ keys: [key] }), told: "ok" },
  "sessions.unsubscribe": { good: () => ({ subscriptionId: "ann-secret-50" }), told: "ok" },
  "chat.history": { good: ({ key }) => ({ sessionKey: key }), told: "not_found" },
  "chat.live": { good: ({ busy }) => ({ sessionKey: busy }), told: "not_found" },
  "blobs.get": { good: ({ key, sha256 }) => ({ key, sha256 }), told: "not_found" },
  "runs.list": { good: ({ busy }) => ({ sessionKey: busy }), told: "not_found" },
  "runs.get": { good: ({ runId }) => ({ runId }), told: "not_found" },
  "runs.steps": { good: ({ runId }) => ({ runId }), told: "not_found" },
  "runs.budget": { good: ({ runId }) => ({ rootId: runId }), told: "not_found" },
  "lanes.list": { good: () => ({}), told: "ok" },
  "outbox.list": { good: () => ({}), told: "ok" },
  "schedules.list": { good: () => ({}), told: "ok" },
  "approvals.list": { good: ({ runId }) => ({ runId, open: false }), told: "ok" },
  "agents.list": { good: () => ({}), told: "ok" },
  "models.list": { good: () => ({}), told: "ok" },
  "access.explain": { good: ({ key, busy }) => ({ asker: key, target: busy }), told: "not_found" },
  "access.matrix": { good: ({ key, busy }) => ({ keys: [key, busy] }), told: "ok" },
  "links.create": { good: () => ({}), told: "ok" },
  "tokens.revokeOwn": { good: ({ spareTokenId }) => ({ tokenId: spareTokenId }), told: "not_found" },
} satisfies Partial<WalkTable>;

const writing = {
  "sessions.create": {
    good: (_, via) => ({ key: `agent:main:session:ann-secret-51-${via}`, label: `ANN-SECRET-52-${via}` }),
    others: (_, via) => ({
      key: shadow("create", via),
      sessionId: `shadow-create-${via}`,
      label: `shadow-create-${via} label`,
    }),
    told: "ok",
  },
  "sessions.send": {
    good: ({ key }) => ({ key, message: "repeat one", idempotencyKey: "w-1", timeoutMs: 150_000 }),
    others: (_, via) => ({
      key: shadow("send", via),
      message: "repeat own",
      idempotencyKey: `${once}${via === "ws" ? "-ws" : ""}`,
      timeoutMs: 150_000,
    }),
    told: "ok",
  },
  "sessions.fork": { good: ({ key, entryId }) => ({ key, entryId }), told: "not_found" },
  "sessions.branch": { good: ({ key, secondId }) => ({ key, entryId: secondId }), told: "not_found" },
  "sessions.label": {
    good: ({ key, secondId }) => ({ key, entryId: secondId, label: "ANN-SECRET-53" }),
    told: "not_found",
  },
  "sessions.rename": { good: ({ key }) => ({ key, name: "ANN-SECRET-53" }), told: "not_found" },
  "sessions.archive": { good: ({ key }) => ({ key }), told: "not_found" },
  "chat.send": {
    good: ({ key }) => ({ sessionKey: key, message: "repeat two", idempotencyKey: "w-2" }),
    others: (_, via) => ({
      sessionKey: shadow("chat", via),
      message: "repeat own",
      idempotencyKey: `ann-secret-54-${via}`,
    }),
    told: "ok",
  },
  // A session other than the busy one, because the approval for the busy session's run would expire.
  "chat.abort": { good: ({ key }) => ({ sessionKey: key }), told: "not_found" },
  agent: {
    good: ({ key }) => ({ sessionKey: key, message: "repeat three", idempotencyKey: "w-3" }),
    others: (_, via) => ({
      sessionKey: shadow("agent", via),
      message: "repeat own",
      idempotencyKey: `ann-secret-55-${via}`,
    }),
    told: "ok",
  },
  "agent.wait": { good: ({ runId }) => ({ runId, timeoutMs: 0 }), told: "not_found" },
  "approvals.resolve": {
    good: ({ approvalId }) => ({ approvalId, answer: "approved" }),
    told: "not_found",
  },
  "outbox.retry": { good: ({ deadId }) => ({ outboxId: deadId }), told: "not_found" },
  "outbox.drop": { good: ({ queuedId }) => ({ outboxId: queuedId }), told: "not_found" },
  "runs.edit": {
    good: ({ waitingId }) => ({ runId: waitingId, message: "ANN-SECRET-57" }),
    told: "not_found",
  },
  "runs.abort": { good: ({ runId }) => ({ runId, reason: "enough" }), told: "not_found" },
  "schedules.run": {
    good: () => ({ name: "ann-secret-58", idempotencyKey: "w-58" }),
    told: "not_found",
  },
  "schedules.pause": { good: () => ({ name: "ann-secret-58" }), told: "not_found" },
  "schedules.resume": { good: () => ({ name: "ann-secret-58" }), told: "not_found" },
  "runs.retry": { good: ({ lostId }) => ({ runId: lostId }), told: "not_found" },
  "tools.invoke": {
    good: ({ key }) => ({ sessionKey: key, name: "sessions_list", arguments: {} }),
    told: "not_found",
  },
} satisfies Partial<WalkTable>;

const administering = {
  "runs.release": { good: ({ waitingId }) => ({ runId: waitingId }), told: "not_found" },
  "sessions.patch": { good: ({ key }) => ({ key, displayName: "ANN-SECRET-60" }), told: "not_found" },
  "sessions.reset": { good: ({ resettable }) => ({ key: resettable }), told: "not_found" },
  "sessions.delete": { good: ({ doomed }) => ({ key: doomed }), told: "not_found" },
  "sessions.restore": { good: ({ trashed }) => ({ key: trashed }), told: "not_found" },
  "sessions.compact": { good: ({ long }) => ({ key: long }), told: "not_found" },
  "sessions.import": {
    good: (_, via) => ({ files: [{ name: `ann-secret-61-${via}.jsonl`, content: piFile(via) }] }),
    told: "ok",
  },
  "sessions.redact": { good: ({ key, entryId }) => ({ key, entryIds: [entryId] }), told: "not_found" },
  "chat.inject": {
    good: ({ key }) => ({ sessionKey: key, message: "ANN-SECRET-62", idempotencyKey: "w-4" }),
    told: "not_found",
  },
  "tokens.create": { good: () => ({ scopes: ["read"], userId: "ann" }), told: "forbidden" },
  "tokens.list": { good: () => ({}), told: "forbidden" },
  "tokens.revoke": { good: ({ spareTokenId }) => ({ tokenId: spareTokenId }), told: "forbidden" },
  "maintenance.run": { good: () => ({ dryRun: true }), told: "forbidden" },
  "config.get": { good: () => ({}), told: "forbidden" },
  "config.reload": { good: () => ({}), told: "forbidden" },
  "users.list": { good: () => ({}), told: "forbidden" },
  "users.remove": { good: () => ({ userId: "ann" }), told: "forbidden" },
} satisfies Partial<WalkTable>;

/** Every method. A missing one causes a compile error. The most destructive methods come last. */
export const walkTable = { ...reading, ...writing, ...administering } satisfies WalkTable;

function piFile(via: Via): string {
  const at = "2026-01-01T00:00:00.000Z";
  const header = { type: "session", version: 3, id: `imported-${via}`, timestamp: at, cwd: "/w" };
  const message = { role: "user", content: "hello", timestamp: 1 };
  const entry = { type: "message", id: "a1", parentId: null, timestamp: at, message };
  return `${JSON.stringify(header)}\n${JSON.stringify(entry)}\n`;
}
