import { SkeinError } from "../../core/errors.ts";
import { readImageHeader } from "../../core/image-header.ts";
import type { Provenance } from "../../core/messages.ts";
import { present } from "../../core/present.ts";
import { keyOfReference } from "../../core/references.ts";
import type { Params } from "../../protocol/method-table.ts";
import type { AcceptedPayload, SentPayload } from "../../protocol/runs.ts";
import type { DeliveryTarget, Run, RunOptions, RunWaits } from "../../runs/contract.ts";
import { runIdOf } from "../../runs/ledger/run-ledger.ts";
import { checkSameRequest } from "../../runs/same-request.ts";
import { acceptInput, findFor, withImages } from "../../sessions/accept.ts";
import type { CompactionNotDone } from "../../sessions/compaction-summary.ts";
import { outsideChannel } from "../../sessions/delivery.ts";
import { resolveSessionTarget } from "../../sessions/resolve-context.ts";
import type { RuntimeContext } from "../../sessions/runtime-context.ts";
import type { SendOptions } from "../../sessions/session-handle.ts";
import type { SessionRecord } from "../../store/contract.ts";
import type { Call, HandlersOf, MethodApp } from "./dispatch.ts";
import { payloadsFor } from "./runs.ts";
import { askerOf, contextOf, findSession, resolveTarget } from "./session-lookup.ts";

type Method = "sessions.send" | "chat.send" | "chat.inject" | "agent" | "agent.wait";

/** Methods that send messages and wait for replies. */
export function chatHandlers(app: MethodApp): HandlersOf<Method> {
  const { skein } = app;
  return {
    "sessions.send": async (params, call) => {
      const { timeoutMs = 0 } = params;
      const run = await acceptMessage(app, call, params, () => resolveTarget(app, call, params));
      return waitForRun(app, call, run.runId, timeoutMs);
    },
    "chat.send": async (params, call) =>
      acceptedPayload(app, await acceptMessage(app, call, params, () => resolveTarget(app, call, params))),
    "chat.inject": async (params, call) => {
      const { message, idempotencyKey } = params;
      const known = await findRun(app, runIdOf(call.userId, idempotencyKey), call.userId);
      if (known !== null) {
        checkSameRequest(known, { content: message, isNote: true, ...keyIn(app, params) });
        return acceptedPayload(app, known);
      }
      const session = await findSession(app, call, params);
      return acceptedPayload(app, await skein.session(contextOf(session)).note(message, { idempotencyKey }));
    },
    agent: async (params, call) =>
      acceptedPayload(app, await acceptMessage(app, call, params, () => agentTarget(app, call, params))),
    "agent.wait": ({ runId, timeoutMs = 30_000 }, call) => waitForRun(app, call, runId, timeoutMs),
  };
}

interface MessageInput
  extends Pick<RunOptions, "model" | "thinking" | "runTimeoutSeconds" | "system" | "extraSystemPrompt"> {
  readonly key?: string;
  readonly sessionKey?: string;
  readonly agentId?: string;
  readonly message: string;
  readonly idempotencyKey: string;
  readonly queueMode?: NonNullable<SendOptions["queueMode"]>;
  readonly attachments?: readonly Attachment[];
  readonly provenance?: Provenance;
}

interface AgentTarget {
  readonly context: RuntimeContext;
  readonly session: SessionRecord | null;
  readonly deliverTo?: DeliveryTarget;
}

/**
 * Accepts a message. A retry with the same idempotency key returns the same run, regardless of what has happened to its
 * session, because the target is not resolved again.
 */
async function acceptMessage(
  app: MethodApp,
  call: Call,
  { message, idempotencyKey, queueMode, attachments = [], provenance, ...input }: MessageInput,
  findTarget: () => Promise<AgentTarget>,
): Promise<Run> {
  const runId = runIdOf(call.userId, idempotencyKey);
  const known = await findRun(app, runId, call.userId);
  const content = withImages(message, attachedImages(attachments));
  const { model, thinking, runTimeoutSeconds, system, extraSystemPrompt } = input;
  const options = present({ model, thinking, runTimeoutSeconds, system, extraSystemPrompt });
  if (known !== null) {
    checkSameRequest(known, {
      content,
      options,
      isNote: false,
      ...present({ queueMode }),
      ...keyIn(app, input),
    });
    return known;
  }
  const { context, session, deliverTo } = await findTarget();
  // Paths in a client's message refer to files on the client's machine. Only a local caller uses this machine's files.
  const origin = call.isLocal ? "cli" : "api";
  const { run } = await acceptInput(
    app,
    resolveSessionTarget(app, context),
    {
      kind: "user",
      runId,
      content,
      idempotencyKey,
      options: { ...options, ...present({ deliverTo }), origin },
      ...present({ queueMode, provenance }),
    },
    session,
  );
  return run;
}

/**
 * Finds the run that an earlier request started. From then on, this process treats the run as if this process had
 * accepted it.
 */
async function findRun(
  { runs, closed }: MethodApp,
  runId: string,
  userId: string | null,
): Promise<Run | null> {
  closed.throwIfAborted();
  const run = await runs.get(runId, userId);
  if (run !== null) runs.adoptRequest(run);
  return run;
}

/**
 * Returns the session key that the params name. Labels and session IDs are not compared, because they might refer to a
 * different session by now.
 */
function keyIn(
  app: MethodApp,
  { key, sessionKey = key, agentId }: Pick<MessageInput, "key" | "sessionKey" | "agentId">,
): { readonly sessionKey?: string } {
  if (sessionKey === undefined) return {};
  return present({ sessionKey: keyOfReference(sessionKey, askerOf(app, { agentId })) });
}

/** Without a session key, the target is the agent's main session. */
async function agentTarget(app: MethodApp, call: Call, params: Params<"agent">): Promise<AgentTarget> {
  const { sessionKey, agentId, deliver } = params;
  const target =
    sessionKey === undefined
      ? { context: present({ userId: call.userId, agentId }), session: null }
      : await resolveTarget(app, call, { sessionKey, agentId });
  if (deliver !== true) return target;
  const resolved = resolveSessionTarget(app, target.context);
  const session = target.session ?? (await findFor(app.store, resolved));
  return { ...target, session, deliverTo: channelOf(session ?? { key: resolved.key, meta: {} }) };
}

/** Returns the session's channel. Throws if it has none. */
function channelOf({ key, meta }: Pick<SessionRecord, "key" | "meta">): DeliveryTarget {
  const target = outsideChannel({ key, meta });
  if (target !== null) return target;
  const problem = `The session ${key} has no channel to deliver a reply to`;
  throw new SkeinError("invalid_arguments", { problem, advice: "Omit deliver" });
}

/** Returns the run once it has ended, or its current state after `timeoutMs` or when the client disconnects. */
async function waitForRun(
  app: MethodApp,
  call: Call,
  runId: string,
  timeoutMs: number,
): Promise<SentPayload> {
  const { skein } = app;
  const run = await skein.ended(runId, { timeoutMs, signal: call.signal }, call.userId);
  return payloadsFor(app, call).sent(run, await appWaits(skein, run));
}

export async function acceptedPayload({ skein }: MethodApp, run: Run): Promise<AcceptedPayload> {
  const { runId, session } = run;
  const waitsForApp = (await appWaits(skein, run))?.app;
  return { runId, status: "accepted", sessionKey: session.key, ...present({ waitsForApp }) };
}

/** Returns `null` if the run does not belong to an app or is no longer queued. */
async function appWaits(skein: MethodApp["skein"], { runId, app, state }: Run): Promise<RunWaits | null> {
  return app === null || state !== "queued" ? null : skein.waits(runId);
}

export interface Attachment {
  readonly name?: string;
  readonly mimeType: string;
  readonly data: string;
}

/**
 * Returns attachments as image blocks. The type is detected from the bytes, and anything that is not an image is
 * rejected.
 */
export function attachedImages(attachments: readonly Attachment[]): { data: string; mimeType: string }[] {
  return attachments.map((attachment, index) => {
    const header = readImageHeader(Buffer.from(attachment.data, "base64"));
    if (header === null) throw noImage(attachment, index);
    return { data: attachment.data, mimeType: header.mimeType };
  });
}

function noImage({ name, mimeType }: Attachment, index: number): SkeinError {
  const which = name === undefined ? `Attachment ${index + 1}` : `The attachment ${name}`;
  return new SkeinError("invalid_arguments", {
    problem: `${which}, sent as ${mimeType}, is not a supported image`,
    advice: "Send a PNG, JPEG, GIF or WebP image, or put the content in the message",
  });
}

/** Reasons after which a retry might succeed. */
const ofSummarizer: readonly CompactionNotDone["reason"][] = [
  "failed",
  "overflow",
  "empty",
  "too_long",
  "poor",
  "timed_out",
  "aborted",
];

/** Asks the session's model for a summary. If no summary is produced, nothing is written. */
export function compactHandlers(app: MethodApp): HandlersOf<"sessions.compact"> {
  return {
    "sessions.compact": async (params, call) => {
      const session = await findSession(app, call, params);
      const how = { signal: call.signal, ...present({ instructions: params.instructions }) };
      const outcome = await app.skein.session(contextOf(session)).compact(how);
      if (!outcome.done) throw notCompacted(session.key, outcome);
      const { entryId, firstKeptEntryId, tokensBefore, tokensAfter } = outcome;
      const { key: sessionKey, sessionId } = session;
      return { key: sessionKey, sessionId, entryId, firstKeptEntryId, tokensBefore, tokensAfter };
    },
  };
}

function notCompacted(key: string, { reason, note }: CompactionNotDone): SkeinError {
  const problem = `The session ${key} was not compacted: ${note}`;
  return ofSummarizer.includes(reason)
    ? new SkeinError("unavailable", { problem, advice: "Nothing was written. Try again" })
    : new SkeinError("conflict", { problem, advice: "Nothing was written, and the session is unchanged" });
}
