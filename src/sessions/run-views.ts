import { readAnnouncement } from "../core/announcement.ts";
import { present } from "../core/present.ts";
import type { SessionRef } from "../core/session-ref.ts";
import { cutText, shortenText } from "../core/text.ts";
import type { OutboxRowPayload } from "../protocol/outbox.ts";
import type { ApprovalPayload, RunRowPayload, SentPayload } from "../protocol/runs.ts";
import type { Approval, OutboxRow, Run, RunWaits } from "../runs/contract.ts";

const longestPreview = 200;

/**
 * Returns text as its reader is allowed to see it. Applied before truncation, because half a secret would not be
 * recognized.
 */
export type Show = (text: string) => string;

/** An armored private key is the longest secret. */
const longestSecret = 16_384;

/** Returns the beginning of a text on one line. */
export function previewText(text: string, show: Show): string {
  const line = show(cutText(text, longestPreview + longestSecret))
    .replace(/\s+/g, " ")
    .trim();
  return shortenText(line, longestPreview);
}

/** Returns the beginning of a run's input on one line. */
export function previewInput(run: Run, show: Show): string {
  return previewText(writtenInput(run), show);
}

/**
 * Returns the task of a spawned session, or the result in an announcement, without the text that Skein adds for the
 * model.
 */
function writtenInput(run: Run): string {
  const { sequel } = run.options;
  if (sequel?.type === "child") return sequel.task;
  const text = inputText(run);
  if (run.kind !== "announce") return text;
  return readAnnouncement(text)?.reply ?? text;
}

export function runRow(
  run: Run,
  waits: RunWaits | null = null,
  show: Show = (text) => text,
  retryAt: number | null = null,
): RunRowPayload {
  const { runId, session, state, kind, lane, queueMode, seq, root, createdAt, startedAt, endedAt } = run;
  return present({
    runId,
    ...sessionFields(session),
    agentId: session.agentId,
    state,
    kind,
    lane,
    queueMode,
    preview: shortenText(show(writtenInput(run)), longestPreview),
    seq,
    rootId: root.rootId,
    hops: root.hops,
    createdAt,
    startedAt,
    endedAt,
    deadline: endedAt === null ? run.deadline : null,
    model: run.options.model,
    startedBy: run.startedBy,
    mergedInto: run.mergedInto,
    keptFor: run.keptFor,
    waitsFor: waits === null || waits.runIds.length === 0 ? null : [...waits.runIds],
    wakeAt: waits?.wakeAt,
    why: whyOf(waits, retryAt),
    abortRequested: run.abortRequested && endedAt === null ? true : null,
    ownerGone: waits?.isOwnerGone,
    lost: run.lost === 0 ? null : run.lost,
    retryOf: run.retryOf,
    retriedAs: run.retriedAs,
    app: run.app,
    waitsForApp: waits?.app,
    missingTools: waits === null || waits.missingTools.length === 0 ? null : [...waits.missingTools],
    ...outcomeOf(run),
    usage: usageOf(run),
  });
}

/**
 * Explains why a run is not making progress. `retryAt` is when a running turn will call its model again after a
 * failure.
 */
function whyOf(waits: RunWaits | null, retryAt: number | null): RunRowPayload["why"] | null {
  if (waits?.why !== undefined) {
    const { runIds, ...why } = waits.why;
    return { ...why, ...present({ runIds: runIds === undefined ? null : [...runIds] }) };
  }
  if (retryAt === null) return null;
  return { kind: "retry", text: "Waiting to retry the model after a failure.", retryAt };
}

/** Returns the result of `agent.wait`. */
export function sentPayload(run: Run, waits: RunWaits | null = null): SentPayload {
  const { runId, session, outcome } = run;
  return {
    runId,
    sessionKey: session.key,
    sessionId: session.sessionId,
    finished: outcome !== null,
    state: outcome?.state ?? run.state,
    ...present({ waitsForApp: waits?.app }),
    ...outcomeOf(run),
    usage: usageOf(run),
  };
}

/** `path` lists the sessions from the root of the family to the session that requests approval. */
export function approvalRow(approval: Approval, path: ApprovalPayload["path"]): ApprovalPayload {
  const { approvalId, runId, session, toolCallId, toolName, requestedAt, expiresAt } = approval;
  const { answer, resolvedAt, by, note } = approval;
  return present({
    approvalId,
    runId,
    ...sessionFields(session),
    toolCallId,
    toolName,
    arguments: { ...approval.arguments },
    requestedAt,
    expiresAt,
    answer,
    resolvedAt,
    by,
    note,
    rootKey: path[0]?.key ?? session.key,
    path,
  });
}

export function outboxRowPayload(row: OutboxRow): OutboxRowPayload {
  const { outboxId, session, runId, target, text, state, attempts, createdAt, nextAt, endedAt } = row;
  return present({
    outboxId,
    ...sessionFields(session),
    runId,
    target: { ...target },
    text,
    state,
    attempts,
    createdAt,
    nextAt: state === "queued" ? nextAt : null,
    endedAt,
    lastError: row.lastError,
    receipt: row.receipt,
    app: row.app,
    waitsForChannel: row.waitsForChannel ? true : null,
  });
}

function sessionFields({ key, sessionId, userId }: SessionRef) {
  return present({ sessionKey: key, sessionId, userId });
}

function usageOf({ usage }: Run): SentPayload["usage"] {
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0, totalTokens = 0, costUsd } = usage;
  return { input, output, cacheRead, cacheWrite, totalTokens, ...present({ costUsd }) };
}

function outcomeOf({ outcome }: Run) {
  if (outcome === null) return {};
  const { state, code, error, reply, output } = outcome;
  const failed = state !== "ok" || error !== undefined;
  const failure = { code: code ?? state, message: error ?? `The run ended in state ${state}.` };
  return present({ reply, output, error: failed ? failure : null });
}

/** Returns the text of an input. An image is represented by its type. */
export function inputText({ message }: Run): string {
  const { content } = message as { readonly content?: unknown };
  if (typeof content === "string") return content;
  const blocks = Array.isArray(content) ? (content as { type: string; text?: string }[]) : [];
  return blocks.map((block) => block.text ?? `[${block.type}]`).join(" ");
}
