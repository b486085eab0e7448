import { SkeinError } from "../core/errors.ts";
import { isAcpKey, parseKey } from "../core/keys.ts";
import type { Content, Provenance } from "../core/messages.ts";
import { textOf } from "../core/messages.ts";
import { KeyedMutex } from "../core/mutex.ts";
import { present } from "../core/present.ts";
import { sessionIdLookups } from "../core/references.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import type { Accepted, InputKind, QueueMode, RunOptions, RunStore } from "../runs/contract.ts";
import { checkRepeatedInput } from "../runs/same-request.ts";
import type { Scope, SessionMeta, SessionRecord, Store } from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import { minContextWindow } from "../transcript/compaction/limits.ts";
import { estimateTokens } from "../transcript/estimate-tokens.ts";
import { withBlobs } from "./append.ts";
import { firstFound, refuseTrashed } from "./find-session.ts";
import type { ResolvedContext } from "./runtime-context.ts";

export interface AcceptDeps {
  readonly store: Store;
  readonly runs: Pick<RunStore, "accept" | "get" | "adoptRequest">;
  /** Whether there is an agent for such a session; left out: all there are. */
  serves?(agentId: string, key: string): boolean;
  /** Throws where no model of this name can be asked. */
  checkModel?(name: string): void;
  /** Left out: no window is known. */
  readonly modelWindow?: FindModelWindow;
}

/** The model that answers in a session, and its window in tokens; `null`: not known. */
export type FindModelWindow = (agentId: string, key: string, model: string | undefined) => ModelWindow | null;

export interface ModelWindow {
  readonly model: string;
  readonly contextWindow: number;
}

/** Something said to a session from outside. */
export interface OutsideInput {
  readonly kind: Extract<InputKind, "user" | "channel" | "cron">;
  readonly content: Content;
  readonly runId: string;
  readonly idempotencyKey?: string;
  readonly queueMode?: QueueMode;
  readonly options?: RunOptions;
  readonly provenance?: Provenance;
}

/**
 * Takes input in. A well-formed key makes its session; what is large goes to blobs first; then the input is durable, and
 * waits for its turn.
 */
export async function acceptInput(
  { store, runs, serves = () => true, checkModel = () => undefined, modelWindow = () => null }: AcceptDeps,
  context: ResolvedContext,
  { content, ...input }: OutsideInput,
): Promise<Accepted> {
  if (isEmpty(content)) {
    throw new SkeinError("invalid_arguments", {
      problem: "The message is empty",
      advice: "Say something, or attach an image",
    });
  }
  if (!serves(context.agentId, context.sessionKey)) throw noSuchAgent(context.agentId);
  const named = input.options?.model;
  if (named !== undefined && !isAcpKey(context.sessionKey)) checkModel(named);
  await checkTextSize(textOf(content), async () => {
    const model = named ?? (await findFor(store, context))?.meta.model;
    return modelWindow(context.agentId, context.sessionKey, model);
  });
  const accept = async () => {
    const known = await knownRun({ store, runs }, context, { content, ...input });
    if (known !== null) return known;
    const session = await sessionFor(store, context);
    const message = await withBlobs(store, scopeOfSession(session), { role: "user", content });
    return runs.accept({ session: sessionRefOf(session), message, ...input });
  };
  return input.idempotencyKey === undefined ? accept() : requestsOf(runs).run(input.runId, accept);
}

/** Requests under one idempotency key, one after the other: the second finds what the first has made. */
const requests = new WeakMap<object, KeyedMutex>();

function requestsOf(runs: object): KeyedMutex {
  const queue = requests.get(runs) ?? new KeyedMutex();
  requests.set(runs, queue);
  return queue;
}

/** Where the session does not exist, the run that is known under the key: no session is made for a repeated request. */
async function knownRun(
  { store, runs }: Pick<AcceptDeps, "store" | "runs">,
  context: ResolvedContext,
  { content, ...input }: OutsideInput,
): Promise<Accepted | null> {
  if (input.idempotencyKey === undefined || (await findFor(store, context)) !== null) return null;
  const run = await runs.get(input.runId, context.userId);
  if (run === null) return null;
  checkRepeatedInput(run, { ...input, message: { role: "user", content } }, context.sessionKey);
  runs.adoptRequest(run);
  return { run, isNew: false };
}

/** Characters; for a shorter text nobody looks up the model. */
const fitsEveryWindow = minContextWindow;

/**
 * Throws `message_too_large` where the text alone is longer than the window of the model that would read it: no request could
 * hold it. Every door checks this before it writes anything.
 */
export async function checkTextSize(
  text: string,
  findWindow: () => ModelWindow | null | Promise<ModelWindow | null>,
): Promise<void> {
  if (text.length <= fitsEveryWindow) return;
  const window = await findWindow();
  // No text has more tokens than characters, and counting them takes longer than measuring the text.
  if (window === null || text.length <= window.contextWindow) return;
  const tokens = estimateTokens([{ role: "user", content: text }]);
  if (tokens > window.contextWindow) throw new SkeinError("message_too_large", { tokens, ...window });
}

/** The session that a context means; made where there is none. One of somebody else's agent is made by a spawn alone. */
export async function sessionFor(store: Store, context: ResolvedContext): Promise<SessionRecord> {
  const known = await findFor(store, context);
  if (known !== null) return known;
  if (isAcpKey(context.sessionKey)) return noSuchSession(context.sessionKey);
  const { userId, agentId, sessionKey, sessionId, cwd, channel, delivery } = context;
  const meta: SessionMeta = present({ channel, delivery });
  const scope = { agentId, ...present({ userId }) };
  const init = { key: sessionKey, cwd, meta };
  try {
    return await store.sessions.create(scope, { ...init, ...present({ sessionId }) });
  } catch (error) {
    if (!(error instanceof SkeinError) || error.code !== "conflict") throw error;
    // Another caller was quicker.
    const made = await findFor(store, context);
    if (made !== null) return made;
    await refuseTrashed(store.sessions, scope, { agentId }, sessionId ?? sessionKey);
    const known = sessionId === null ? null : await store.sessions.get(present({ userId }), sessionId);
    // The session before a reset keeps the ID: the name goes on under a new one.
    if (known === null || parseKey(known.key).form !== "reset") throw error;
    return store.sessions.create(scope, init);
  }
}

/** The holder of the key; where none is, and only an ID was given, the session of that ID. */
export async function findFor(
  store: Store,
  { userId, agentId, sessionKey, sessionId }: ResolvedContext,
): Promise<SessionRecord | null> {
  const scope: Scope = { agentId, ...present({ userId }) };
  const byId = sessionId === null ? [] : sessionIdLookups(sessionId, agentId);
  return firstFound(store.sessions, scope, [{ by: "key", key: sessionKey }, ...byId]);
}

function isEmpty(content: Content): boolean {
  if (typeof content === "string") return content.trim() === "";
  return !content.some((block) => block.type === "image" || block.text.trim() !== "");
}

export function noSuchAgent(agentId: string): SkeinError {
  return new SkeinError("not_found", {
    what: "Agent",
    name: agentId,
    advice: "Define it with defineAgent, or under agents in the configuration",
  });
}
