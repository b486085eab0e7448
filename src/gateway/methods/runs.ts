import { present } from "../../core/present.ts";
import type { Params } from "../../protocol/method-table.ts";
import type { OutboxRowPayload } from "../../protocol/outbox.ts";
import type {
  AbortedPayload,
  ApprovalPayload,
  RunListPayload,
  RunRowPayload,
  SentPayload,
} from "../../protocol/runs.ts";
import type { Approval, OutboxRow, OutboxState, Run, RunWaits } from "../../runs/contract.ts";
import { openStates } from "../../runs/states.ts";
import { approvalRow, inputText, outboxRowPayload, runRow, sentPayload } from "../../sessions/run-views.ts";
import { noSuchRun } from "../../sessions/turn-handle.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { maskFor } from "../auth/mask.ts";
import type { Call, HandlersOf, MethodApp } from "./dispatch.ts";
import { findSession, findSessionIfNamed } from "./session-lookup.ts";

type Method =
  | "runs.list"
  | "runs.get"
  | "runs.release"
  | "runs.retry"
  | "approvals.list"
  | "approvals.resolve";

/** For lists over every user, so that a response does not grow with the number of users. */
const mostApprovals = 500;

/** Runs and approvals. */
export function runHandlers(app: MethodApp): HandlersOf<Method> {
  const { skein } = app;
  return {
    "runs.list": (params, call) => runList(app, call, params),
    "runs.get": async ({ runId }, call) => {
      const shown = payloadsFor(app, call);
      const run = await skein.runs.get(runId, call.userId);
      if (run === null) throw noSuchRun(runId);
      const approvals = await skein.approvals.list({ runId, open: false }, call.userId);
      return {
        run: shown.run(run, await skein.waits(runId)),
        input: shown.value(inputText(run)),
        approvals: approvals.map(shown.approval),
        notes: (await skein.notes(run)).map(({ kind, note }) => ({ kind, note: shown.value(note) })),
      };
    },
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
      const approvals = found.toReversed().map(payloadsFor(app, call).approval);
      return { count: approvals.length, approvals };
    },
    "approvals.resolve": async ({ approvalId, answer }, call) => {
      const { name, tokenId } = call.principal;
      const by = name === "" ? tokenId : name;
      return payloadsFor(app, call).approval(
        await skein.approvals.resolve(approvalId, answer, by, call.userId),
      );
    },
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
    approvals: approvals.map(shown.approval),
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
      // The newest first, so that no queued run starts when the one before it is aborted.
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

/** A run of another session is not found. */
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

/** Messages to channels. */
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

/** Payloads for one caller. Without the scope `admin`, secrets in texts are masked. */
export interface Payloads {
  run(run: Run, waits: RunWaits | null): RunRowPayload;
  sent(run: Run, waits: RunWaits | null): SentPayload;
  approval(approval: Approval): ApprovalPayload;
  outbox(row: OutboxRow): OutboxRowPayload;
  /** Any other value. */
  value<T>(value: T): T;
}

/** IDs and keys are not masked, because clients use them in later calls. */
const textsOfRun = ["preview", "reply", "output", "error"];
const textsOfApproval = ["arguments"];
const textsOfOutbox = ["text", "lastError", "receipt"];

export function payloadsFor(app: Pick<MethodApp, "redactor">, call: Pick<Call, "isAdmin">): Payloads {
  const mask = maskFor(app, call);
  const fields = <T extends object>(payload: T, names: readonly string[]): T => {
    if (mask.isOff) return payload;
    const texts = Object.entries(payload).filter(([name]) => names.includes(name));
    return { ...payload, ...mask.plain(Object.fromEntries(texts)) };
  };
  return {
    run: (run, waits) =>
      fields(
        runRow(run, waits, (text) => mask.text(text)),
        textsOfRun,
      ),
    sent: (run, waits) => fields(sentPayload(run, waits), textsOfRun),
    approval: (approval) => fields(approvalRow(approval), textsOfApproval),
    outbox: (row) => fields(outboxRowPayload(row), textsOfOutbox),
    value: (value) => mask.plain(value),
  };
}
