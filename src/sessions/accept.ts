import { KeyedMutex } from "../core/concurrency.ts";
import { SkeinError } from "../core/errors.ts";
import { isAcpKey, parseKey } from "../core/keys.ts";
import type { Content, Provenance } from "../core/messages.ts";
import { textOf } from "../core/messages.ts";
import { present } from "../core/present.ts";
import { sessionIdLookups } from "../core/references.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import type { Accepted, InputKind, QueueMode, RunOptions } from "../runs/contract.ts";
import { checkRepeatedInput } from "../runs/same-request.ts";
import type { Scope, SessionMeta, SessionRecord, Store } from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import { minContextWindow } from "../transcript/compaction/limits.ts";
import { estimateTokens } from "../transcript/estimate-tokens.ts";
import type { App } from "./app.ts";
import { withBlobs } from "./append.ts";
import { firstFound, refuseTrashed } from "./find-session.ts";
import type { ResolvedContext } from "./resolve-context.ts";

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
 * Accepts input: once this resolves, the input is durable and waits for its turn. A well-formed key creates its session, and
 * large content is moved to blobs first.
 */
export async function acceptInput(
  app: Pick<App, "store" | "runs" | "agents" | "acp" | "models">,
  context: ResolvedContext,
  { content, ...input }: OutsideInput,
): Promise<Accepted> {
  const { store, runs } = app;
  if (isEmpty(content)) {
    throw new SkeinError("invalid_arguments", {
      problem: "The message is empty",
      advice: "Say something, or attach an image",
    });
  }
  if (!isServed(app, context.agentId, context.sessionKey)) throw noSuchAgent(context.agentId);
  const named = input.options?.model;
  if (named !== undefined && !isAcpKey(context.sessionKey)) app.models.check(named);
  const session = await findFor(store, context);
  await checkTextSize(textOf(content), () =>
    modelWindow(app, context.agentId, context.sessionKey, named ?? session?.meta.model),
  );
  const accept = async () => {
    const known = session === null ? await knownRun(app, context, { content, ...input }) : null;
    if (known !== null) return known;
    const target = session ?? (await createSession(store, context));
    const message = await withBlobs(store, scopeOfSession(target), { role: "user", content });
    return runs.accept({ session: sessionRefOf(target), message, ...input });
  };
  return input.idempotencyKey === undefined ? accept() : requestsOf(runs).run(input.runId, accept);
}

/** Whether there is an agent for such a session. */
export function isServed(
  { agents, acp }: Pick<App, "agents" | "acp">,
  agentId: string,
  key: string,
): boolean {
  return isAcpKey(key) ? acp.serves(agentId, key) : agents.find(agentId) !== null;
}

/** The model that answers in a session, and its window; `null`: not known. */
export function modelWindow(
  { agents, models }: Pick<App, "agents" | "models">,
  agentId: string,
  key: string,
  named: string | undefined,
): ModelWindow | null {
  const model = isAcpKey(key) ? undefined : (named ?? agents.find(agentId)?.model);
  if (model === undefined) return null;
  try {
    const { contextWindow } = models.turnModel(model).info;
    return contextWindow === undefined ? null : { model, contextWindow };
  } catch {
    return null; // the run says what is wrong with the model
  }
}

/** Requests under one idempotency key, one after the other: the second finds what the first has made. */
const requests = new WeakMap<object, KeyedMutex>();

function requestsOf(runs: object): KeyedMutex {
  const queue = requests.get(runs) ?? new KeyedMutex();
  requests.set(runs, queue);
  return queue;
}

/** The run that a repeated request finds although its session does not exist: no session is created for it. */
async function knownRun(
  { runs }: Pick<App, "runs">,
  context: ResolvedContext,
  { content, ...input }: OutsideInput,
): Promise<Accepted | null> {
  if (input.idempotencyKey === undefined) return null;
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
  return (await findFor(store, context)) ?? createSession(store, context);
}

async function createSession(store: Store, context: ResolvedContext): Promise<SessionRecord> {
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
