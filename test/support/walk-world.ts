import { createHash } from "node:crypto";
import { globSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, vi } from "vitest";
import type { Result } from "../../src/entry-client.ts";
import type { TokenScope } from "../../src/gateway/auth/principal.ts";
import type { MethodApp } from "../../src/gateway/methods/dispatch.ts";
import { allHandlers } from "../../src/gateway/methods/handlers.ts";
import { createServer } from "../../src/gateway/server/create-server.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import type { LedgerRuns } from "../../src/runs/ledger/ledger-runs.ts";
import { emptyStore } from "./empty-store.ts";
import { openGatewayWith } from "./gateway-inside.ts";
import { allEntries, answered, said } from "./store-calls.ts";
import type { WalkPlaces } from "./walk-places.ts";
import { longTalk, plantMain } from "./walk-places.ts";
import type { WholeGateway } from "./whole-gateway.ts";

/** The whole gateway with Ann's data in it, full of markers, and with tokens for all users. */

export const annScope = { userId: "ann" } as const;
export const allScopes: readonly TokenScope[] = ["read", "write", "tools", "admin"];
/** The working directory of Ann's sessions, which only admins are allowed to see. */
export const annFolder = "/srv/ann-secret-90";

export interface WalkWorld extends WalkPlaces {
  readonly gateway: WholeGateway;
  readonly deps: MethodApp;
  readonly runs: LedgerRuns;
  readonly tokens: {
    readonly ann: string;
    readonly bob: string;
    readonly unnamed: string;
    /** The three scopes without `admin`. */
    readonly plain: string;
    readonly alone: Readonly<Record<TokenScope, string>>;
    readonly expired: string;
    readonly revoked: string;
  };
  /** Returns all of Ann's data and every token as one text. */
  fingerprint(): Promise<string>;
  close(): Promise<void>;
}

export const walkConfig = [
  'gateway: { trustProxy: ["127.0.0.1"] }',
  "tools: { sessions: { visibility: all }, agentToAgent: { enabled: true } }",
  "agents: { main: {}, other: {} }",
  "approvals: { timeoutSeconds: 3600 }",
  "schedules: { ann-secret-58: { cron: '0 0 1 1 *', message: ANN-SECRET-58, user: ann } }",
  "",
].join("\n");

/** The real gateway, its internals, and a clock that a test can advance. */
export async function openedGateway(config: string) {
  let deps: MethodApp | null = null;
  const clock = { ahead: 0, now: () => Date.now() + clock.ahead };
  const gateway = await openGatewayWith({
    config,
    clock,
    pieces: {
      handlers: (given) => {
        deps = given;
        return allHandlers(given);
      },
      listen: (parts) => createServer(parts, { requestsPerSecond: 1_000_000 }),
    },
  });
  return { gateway, clock, deps: deps as unknown as MethodApp };
}

export async function openWalk(): Promise<WalkWorld> {
  const { gateway, clock, deps } = await openedGateway(walkConfig);
  const runs = deps.runs as unknown as LedgerRuns;
  const places = await plantAll(gateway, deps, runs);
  const tokens = await makeTokens(gateway, clock);
  const spareTokenId = await spareToken(deps, tokens.ann);
  await stillness(() => fingerprintOf(gateway, deps));
  return {
    ...places,
    spareTokenId,
    gateway,
    deps,
    runs,
    tokens,
    fingerprint: () => fingerprintOf(gateway, deps),
    close: () => gateway.close(),
  };
}

/** The running run has written its input, and the index includes it. */
async function stillness(look: () => Promise<string>): Promise<void> {
  let before = "";
  await vi.waitFor(
    async () => {
      const now = await look();
      const isStill = now === before && now.includes('"lastInputAt": 1');
      before = now;
      expect(isStill).toBe(true);
    },
    { timeout: 150_000, interval: 300 },
  );
}

async function makeTokens(gateway: WholeGateway, clock: { ahead: number; now(): number }) {
  const scopes = [...allScopes];
  const alone = {} as Record<TokenScope, string>;
  for (const scope of allScopes) {
    alone[scope] = await gateway.token({ scopes: [scope], userId: "ann", label: "ANN-SECRET-80" });
  }
  const expired = await gateway.token({ scopes, userId: "ann", expiresAt: clock.now() + 60_000 });
  clock.ahead += 61_000;
  const { body } = await gateway.rpc("tokens.create", { scopes, userId: "ann" });
  const { token: revoked, tokenId } = body as Result<"tokens.create">;
  await gateway.rpc("tokens.revoke", { tokenId });
  return {
    ann: await gateway.token({ scopes, userId: "ann" }),
    bob: await gateway.token({ scopes, userId: "bob" }),
    unnamed: await gateway.token({ scopes }),
    plain: await gateway.token({ scopes: ["read", "write", "tools"], userId: "bob" }),
    alone,
    expired,
    revoked,
  };
}

async function plantAll(
  gateway: WholeGateway,
  deps: MethodApp,
  runs: LedgerRuns,
): Promise<Omit<WalkPlaces, "spareTokenId">> {
  const { sessions } = deps.store;
  const make = async (name: string, ...texts: readonly string[]) => {
    // A name that others can use themselves is not a marker.
    const sessionId = name.startsWith("shadow") ? name : `ann-secret-${name}`;
    const key = `agent:main:session:${sessionId}`;
    await sessions.create(annScope, { key, sessionId, cwd: annFolder, meta: { label: `${name} label` } });
    const items = texts.map((text, at) => ({ draft: at % 2 === 0 ? said(text) : answered(text) }));
    if (items.length > 0) await sessions.append(annScope, sessionId, items);
    return key;
  };
  const main = await plantMain(deps);
  const trashed = await make("20-trashed", "said ANN-SECRET-21");
  await sessions.remove(annScope, "ann-secret-20-trashed");
  const doomed = await make("22-doomed", "said ANN-SECRET-23");
  const resettable = await make("24-reset", "said ANN-SECRET-25");
  const long = await make("26-long", ...longTalk("ANN-SECRET-27"));
  const busy = await make("28-busy");
  const lost = await make("29-lost");
  const desk = await make("30-desk");
  for (const via of ["http", "ws"]) {
    for (const what of ["create", "send", "chat", "agent"]) {
      await make(`shadow-${what}-${via}`, "said ANN-SECRET-31");
    }
  }
  return {
    ...main,
    ...{ trashed, doomed, resettable, long, busy },
    ...(await plantWork(deps, runs, busy)),
    lostId: await plantLostRun(deps, runs, lost),
    waitingId: await plantWaitingRun(gateway, desk),
  };
}

/** A running run with an approval request, and messages in transit. */
async function plantWork(deps: MethodApp, runs: LedgerRuns, busy: string) {
  const handle = deps.skein.session({ userId: "ann", sessionKey: busy });
  const { runId, session } = await handle.accept("be slow for 500 seconds", {
    idempotencyKey: "ann-secret-41-once",
  });
  await untilAsked(deps, runs, runId);
  const fence = (await runs.get(runId))?.fence ?? -1;
  const { approvalId } = await runs.requestApproval(
    { runId, fence },
    {
      toolCallId: "call-1",
      toolName: "pay",
      arguments: { to: "ANN-SECRET-42" },
      expiresAt: Date.now() + 3_600_000,
    },
  );
  const letter = (number: number, channel: string) =>
    runs.outbox.put({
      session,
      runId,
      target: { channel, to: `agent:main:session:ann-secret-${number}-gone` },
      text: `ANN-SECRET-${number}`,
      idempotencyKey: `letter-${number}`,
    });
  // A message to a missing session is given up immediately. A message to an unknown channel waits.
  const [dead, queued] = [await letter(45, "session"), await letter(46, "ann-secret-43-desk")];
  const isDead = async () => expect((await runs.outbox.get(dead.outboxId))?.state).toBe("dead");
  await vi.waitFor(isDead, { timeout: 150_000 });
  return { runId, approvalId, deadId: dead.outboxId, queuedId: queued.outboxId };
}

/** Waits until a run has written everything before its first request. */
async function untilAsked({ store }: MethodApp, runs: LedgerRuns, runId: string): Promise<void> {
  const isAsked = async () => {
    const run = await runs.get(runId);
    const session = await store.sessions.get(annScope, run?.session.sessionId ?? "");
    expect([run?.state, session?.meta.systemSent]).toEqual(["running", true]);
  };
  await vi.waitFor(isAsked, { timeout: 150_000 });
}

/** A run whose owner was lost four times. */
async function plantLostRun(deps: MethodApp, runs: LedgerRuns, sessionKey: string): Promise<string> {
  const { runId } = await deps.skein.session({ userId: "ann", sessionKey }).accept("be slow for 500 seconds");
  for (let loss = 1; loss <= 4; loss++) {
    await untilAsked(deps, runs, runId);
    await runs.lose({ runId, fence: (await runs.get(runId))?.fence ?? -1 });
  }
  return runId;
}

/** A run that is waiting for an app. */
async function plantWaitingRun({ root }: WholeGateway, sessionKey: string): Promise<string> {
  const agents = [defineAgent({ id: "main" })];
  const app = await createSkein({
    dir: root,
    ...(await emptyStore({ dir: root })),
    config: null,
    app: "desk",
    agents,
    workers: false,
    quiet: true,
  });
  try {
    return (await app.session({ userId: "ann", sessionKey }).accept("said ANN-SECRET-32")).runId;
  } finally {
    await app.close();
  }
}

/** Created with Ann's own token. */
async function spareToken({ tokens }: MethodApp, ann: string): Promise<string> {
  const request = { name: "ANN-SECRET-81", scopes: ["read"], user: "ann" } as const;
  return (await tokens.create(request, await tokens.verify(ann))).token.tokenId;
}

async function fingerprintOf({ root }: WholeGateway, { store, skein, tokens }: MethodApp): Promise<string> {
  const query = { includeGlobal: true, includeUnknown: true, limit: 1000 };
  const runs = (await skein.runs.list({ limit: 1000 }, "ann")).map(({ leaseUntil: _, ...run }) => run);
  const listed = await store.sessions.list(annScope, query);
  const archived = await store.sessions.list(annScope, { ...query, archived: true });
  const seen = {
    sessions: listed.sessions,
    archived: archived.sessions,
    trashed: await store.sessions.trashed(annScope),
    runs,
    approvals: await skein.approvals.list({ open: false }, "ann"),
    // The number of attempts depends on the channel.
    outbox: (await skein.outbox({ limit: 1000 }, "ann")).map(({ outboxId, text, state }) => [
      outboxId,
      text,
      state,
    ]),
    tokens: (await tokens.list())
      .filter(({ user }) => user === "ann")
      .map(({ lastUsedAt: _, ...token }) => token),
    entries: await Promise.all(
      [...listed.sessions, ...archived.sessions].map(({ sessionId }) =>
        allEntries(store, annScope, sessionId),
      ),
    ),
    files: filesIn(join(root, "users", "ann")),
  };
  return JSON.stringify(seen, null, 1);
}

function filesIn(folder: string): string[] {
  // `sessions.json` is derived and written later. A write lock can outlive its append briefly.
  const isStable = (name: string) => basename(name) !== "sessions.json" && !name.endsWith(".lock");
  const files = globSync("**/*", { cwd: folder }).filter(
    (name) => isStable(name) && statSync(join(folder, name)).isFile(),
  );
  return files.sort().map((name) => {
    const sum = createHash("sha256")
      .update(readFileSync(join(folder, name)))
      .digest("hex");
    return `${name} ${sum}`;
  });
}
