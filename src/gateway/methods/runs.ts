import { present } from "../../core/present.ts";
import type { Params } from "../../protocol/method-table.ts";
import type { OutboxRowPayload } from "../../protocol/outbox.ts";
import type { LaneListPayload, RunBudgetPayload } from "../../protocol/run-details.ts";
import type {
  AbortedPayload,
  ApprovalPayload,
  RunListPayload,
  RunPayload,
  RunRowPayload,
  SentPayload,
} from "../../protocol/runs.ts";
import type { Approval, OutboxRow, OutboxState, Run, RunWaits } from "../../runs/contract.ts";
import { openStates } from "../../runs/states.ts";
import { approvalRow, inputText, outboxRowPayload, runRow, sentPayload } from "../../sessions/run-views.ts";
import { SessionPaths } from "../../sessions/session-paths.ts";
import { noSuchRun } from "../../sessions/turn-handle.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { maskFor } from "../auth/mask.ts";
import { isForAll } from "../auth/principal.ts";
import type { Call, HandlersOf, MethodApp } from "./dispatch.ts";
import { findSession, findSessionIfNamed } from "./session-lookup.ts";
import { listProcesses, workerOf } from "./shared-processes.ts";

type Method =
  | "runs.list"
  | "runs.get"
  | "runs.steps"
  | "runs.budget"
  | "runs.edit"
  | "lanes.list"
  | "runs.release"
  | "runs.retry"
  | "approvals.list"
  | "approvals.resolve";

/** The maximum number of approvals in a list for all users. Responses must not grow with the number of users. */
const mostApprovals = 500;

/** Methods for runs and approvals. */
export function runHandlers(app: MethodApp): HandlersOf<Method> {
  const { skein } = app;
  return {
    "runs.list": (params, call) => runList(app, call, params),
    "runs.get": async ({ runId }, call) => runPayload(app, call, await findRun(app, call, runId)),
    "runs.steps": async ({ runId }, call) => {
      await findRun(app, call, runId);
      const { steps, ...rest } = await skein.steps(runId);
      const { value } = payloadsFor(app, call);
      const shown = steps.map((step) => ({
        ...step,
        ...present({ error: step.error && value(step.error) }),
      }));
      return { ...rest, steps: shown };
    },
    "runs.budget": async ({ rootId }, { userId }) => runBudget(app, rootId, userId),
    "runs.edit": async ({ runId, message, expectedText }, call) =>
      runPayload(app, call, await skein.runs.edit(runId, message, call.userId, expectedText)),
    "lanes.list": (_, call) => laneList(app, call),
    "runs.release": async ({ runId }, { userId }) => {
      const { session, state } = await skein.runs.release(runId, userId);
      return { runId, sessionKey: session.key, agentId: session.agentId, state };
    },
    "runs.retry": async ({ runId }, { userId }) => {
      const retry = await skein.runs.retry(runId, userId);
      const { session, state, retryOf } = retry;
      return { runId: retry.runId, retryOf: retryOf ?? runId, sessionKey: session.key, state };
    },
    "approvals.list": async (params, call) => {
      const { runId, open = true, limit = 100, allUsers } = params;
      const sessionUid = (await findSessionIfNamed(app, call, params))?.uid;
      const query = { open, limit, ...present({ runId, sessionUid }) };
      const found = await skein.approvals.list(query, allUsers === true ? undefined : call.userId);
      const approvals = await payloadsFor(app, call).approvals(found.toReversed());
      return { count: approvals.length, approvals };
    },
    "approvals.resolve": async ({ approvalId, answer, note }, call) => {
      const { name, tokenId } = call.principal;
      const by = name === "" ? tokenId : name;
      const resolved = await skein.approvals.resolve(approvalId, answer, by, call.userId, note);
      const [payload] = await payloadsFor(app, call).approvals([resolved]);
      return payload as ApprovalPayload;
    },
  };
}

async function laneList(app: MethodApp, { principal, userId, isAdmin }: Call): Promise<LaneListPayload> {
  const seesAll = isForAll(principal) && isAdmin;
  const lanes = await app.skein.lanes(seesAll ? undefined : userId);
  return {
    lanes: lanes.map((lane) => ({ ...lane })),
    ...present({ processes: seesAll ? await listProcesses(app) : null }),
  };
}

async function findRun({ skein }: MethodApp, { userId }: Call, runId: string): Promise<Run> {
  const run = await skein.runs.get(runId, userId);
  if (run === null) throw noSuchRun(runId);
  return run;
}

async function runPayload(app: MethodApp, call: Call, run: Run): Promise<RunPayload> {
  const { skein } = app;
  const { runId } = run;
  const shown = payloadsFor(app, call);
  const approvals = await skein.approvals.list({ runId, open: false }, call.userId);
  return {
    run: shown.run(run, await skein.waits(runId)),
    input: shown.value(inputText(run)),
    approvals: await shown.approvals(approvals),
    notes: (await skein.notes(run)).map(({ kind, note }) => ({ kind, note: shown.value(note) })),
  };
}

/** Throws `not_found` if the request has no run that belongs to the user. */
async function runBudget(
  { skein, config }: MethodApp,
  rootId: string,
  userId: string | null,
): Promise<RunBudgetPayload> {
  const [run] = await skein.runs.list({ rootId, limit: 1 }, userId);
  const used = run === undefined ? null : await skein.budget(rootId);
  if (used === null) throw noSuchRun(rootId);
  const { runs, hops, tokens, costUsd } = config.budget;
  const figure = (value: number, allowed: number | null) => ({ used: value, ...present({ allowed }) });
  return {
    rootId,
    runs: figure(used.runs, runs),
    hops: figure(used.hops, hops),
    tokens: figure(used.tokens, tokens),
    costUsd: figure(used.knownCostUsd, costUsd),
    ...present({ hasUnpriced: used.costUsd === null ? true : null }),
  };
}

async function runList(app: MethodApp, call: Call, params: Params<"runs.list">): Promise<RunListPayload> {
  const { skein } = app;
  const { states, rootId, startedBy, before, lost, waitsForApp, limit = 50, allUsers } = params;
  const userId = allUsers === true ? undefined : call.userId;
  const sessionUid = (await findSessionIfNamed(app, call, params))?.uid;
  const query = present({ states, sessionUid, rootId, startedBy, before, lost, waitsForApp });
  const runs = await skein.runs.list({ ...query, limit: limit + 1 }, userId);
  const page = runs.slice(0, limit);
  const shown = payloadsFor(app, call);
  const waits = await skein.waitsOf(page.map(({ runId }) => runId));
  const rows = page.map((run) => shown.run(run, waits.get(run.runId) ?? null));
  const most = allUsers === true ? mostApprovals : null;
  const approvals = await skein.approvals.list(present({ sessionUid, limit: most }), userId);
  const nextBefore = runs.length > limit ? page.at(-1)?.seq : null;
  return {
    count: rows.length,
    runs: rows,
    approvals: await shown.approvals(approvals),
    ...present({ nextBefore }),
  };
}

const most = 1000;

/** Methods that abort runs. */
export function abortingHandlers(app: MethodApp): HandlersOf<"chat.abort" | "runs.abort"> {
  const { skein } = app;
  return {
    "chat.abort": async (params, call) => {
      const { runId } = params;
      const session = await findSession(app, call, params);
      const runs =
        runId === undefined ? await openIn(app, call, session) : [await runIn(app, call, session, runId)];
      const aborted: AbortedPayload[] = [];
      // Aborts the newest run first so that no queued run starts when the run ahead of it is aborted.
      for (const each of runs) {
        aborted.push({ runId: each.runId, state: await skein.runs.abort(each.runId, call.userId) });
      }
      return { sessionKey: session.key, runs: aborted };
    },
    "runs.abort": async ({ runId, reason }, { userId }) => ({
      runId,
      state: await skein.runs.abort(runId, userId, reason),
    }),
  };
}

/** A run in another session is treated as not found. */
async function runIn(
  { skein }: MethodApp,
  { userId }: Call,
  session: SessionRecord,
  runId: string,
): Promise<Run> {
  const run = await skein.runs.get(runId, userId);
  if (run === null || run.session.uid !== session.uid) throw noSuchRun(runId);
  return run;
}

async function openIn(
  { skein }: MethodApp,
  { userId }: Call,
  { uid }: SessionRecord,
): Promise<readonly Run[]> {
  return skein.runs.list({ sessionUid: uid, states: openStates, limit: most }, userId);
}

/** Methods for messages to channels. */
export function outboxHandlers(app: MethodApp): HandlersOf<"outbox.list" | "outbox.retry" | "outbox.drop"> {
  const { skein } = app;
  return {
    "outbox.list": async ({ outboxId, states, limit, allUsers }, call) => {
      const userId = allUsers === true ? undefined : call.userId;
      const rows =
        outboxId === undefined
          ? await skein.outbox(present({ states, limit }), userId)
          : await one(app, userId, outboxId, states);
      return { count: rows.length, messages: rows.map(payloadsFor(app, call).outbox) };
    },
    "outbox.retry": async ({ outboxId }, call) =>
      payloadsFor(app, call).outbox(await skein.settleOutbox(outboxId, "retry", call.userId)),
    "outbox.drop": async ({ outboxId }, call) =>
      payloadsFor(app, call).outbox(await skein.settleOutbox(outboxId, "drop", call.userId)),
  };
}

async function one(
  { skein }: MethodApp,
  userId: string | null | undefined,
  outboxId: string,
  states: readonly OutboxState[] | undefined,
): Promise<readonly OutboxRow[]> {
  const row = await skein.outboxRow(outboxId, userId);
  return row === null || states?.includes(row.state) === false ? [] : [row];
}

/** Builds payloads for one caller. If the caller lacks the `admin` scope, secrets in text are masked. */
export interface Payloads {
  run(run: Run, waits: RunWaits | null): RunRowPayload;
  sent(run: Run, waits: RunWaits | null): SentPayload;
  /** Looks up the ancestors of each approval's session, once per session. */
  approvals(approvals: readonly Approval[]): Promise<ApprovalPayload[]>;
  outbox(row: OutboxRow): OutboxRowPayload;
  /** Masks any other value. */
  value<T>(value: T): T;
}

/** The fields that are masked. IDs and keys are not, because clients use them in later calls. */
const textsOfRun = ["preview", "reply", "output", "error"];
const textsOfApproval = ["arguments", "note"];
const textsOfOutbox = ["text", "lastError", "receipt"];

export function payloadsFor(
  app: Pick<MethodApp, "redactor" | "turns" | "store">,
  call: Pick<Call, "isAdmin">,
): Payloads {
  const mask = maskFor(app, call);
  const fields = <T extends object>(payload: T, names: readonly string[]): T => {
    if (mask.isOff) return payload;
    const texts = Object.entries(payload).filter(([name]) => names.includes(name));
    return { ...payload, ...mask.plain(Object.fromEntries(texts)) };
  };
  return {
    run: (run, waits) => {
      const turn = run.state === "running" ? app.turns.get(run.session.uid) : undefined;
      const retryAt = turn?.plan.about.runId === run.runId ? turn.retryAt : null;
      const row = runRow(run, waits, (text) => mask.text(text), retryAt);
      return fields({ ...row, ...present({ worker: call.isAdmin ? workerOf(app, run) : null }) }, textsOfRun);
    },
    sent: (run, waits) => fields(sentPayload(run, waits), textsOfRun),
    approvals: async (approvals) => {
      const families = new SessionPaths(app.store);
      return Promise.all(
        approvals.map(async (approval) => {
          const path = await families.pathTo(approval.session);
          const steps = path.map(({ key, label }) => ({
            key,
            ...present({ label: label === undefined ? null : mask.text(label) }),
          }));
          return fields(approvalRow(approval, steps), textsOfApproval);
        }),
      );
    },
    outbox: (row) => fields(outboxRowPayload(row), textsOfOutbox),
    value: (value) => mask.plain(value),
  };
}
