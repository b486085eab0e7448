import { KeyedMutex } from "../core/concurrency.ts";
import { SkeinError } from "../core/errors.ts";
import { isAcpKey, parseKey } from "../core/keys.ts";
import type { Content, Provenance, TextBlock } from "../core/messages.ts";
import { textOf } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { Lookup } from "../core/references.ts";
import { sessionIdLookups } from "../core/references.ts";
import type { MessageDraft } from "../core/seal.ts";
import type { SessionRef } from "../core/session-ref.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import type { Accepted, InputKind, QueueMode, Run, RunOptions } from "../runs/contract.ts";
import { checkRepeatedInput } from "../runs/same-request.ts";
import type { SessionMeta, SessionRecord, Store } from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import { minContextWindow } from "../transcript/compaction/limits.ts";
import { estimateTokens } from "../transcript/estimate-tokens.ts";
import type { App } from "./app.ts";
import { withBlobs } from "./append.ts";
import { firstFound, refuseTrashed } from "./find-session.ts";
import type { SessionTarget } from "./resolve-context.ts";

export interface ModelWindow {
  readonly model: string;
  readonly contextWindow: number;
}

/** Input to a session from a user or an external program. */
export interface OutsideInput {
  readonly kind: Extract<InputKind, "user" | "channel" | "cron">;
  readonly content: Content;
  readonly runId: string;
  readonly idempotencyKey?: string;
  readonly queueMode?: QueueMode;
  readonly options?: RunOptions;
  /** Defaults to an external user on the session's channel. */
  readonly provenance?: Provenance;
}

/**
 * Accepts input and creates the session if it does not exist. Once this resolves, the input is durable and queued.
 * Images are moved to blobs first. `found` is the session if the caller has already looked it up.
 */
export async function acceptInput(
  app: Pick<App, "store" | "runs" | "agents" | "acp" | "models">,
  context: SessionTarget,
  { content, ...given }: OutsideInput,
  found: SessionRecord | null = null,
): Promise<Accepted> {
  const input = { provenance: externalUser(context.channel), ...given };
  const { store, runs } = app;
  if (isEmpty(content)) throw emptyMessage();
  if (!isServed(app, context.agentId, context.key)) throw noSuchAgent(context.agentId);
  const named = input.options?.model;
  if (named !== undefined && !isAcpKey(context.key)) app.models.check(named);
  const text = typeof content === "string" ? content : textOf(content);
  const find = async (): Promise<SessionRef | null> => {
    if (text.length <= fitsEveryWindow) return found ?? locateSession(store, context);
    const record = found ?? (await findFor(store, context));
    await checkTextSize(text, () =>
      modelWindow(app, context.agentId, context.key, named ?? record?.meta.model),
    );
    return record;
  };
  const accept = async (target: SessionRef) => {
    const message: MessageDraft =
      typeof content === "string"
        ? { role: "user", content }
        : await withBlobs(store, scopeOfSession(target), { role: "user", content });
    const isDelayed = typeof content !== "string" || store.work.shared !== null;
    return runs.accept({ session: sessionRefOf(target), message, ...input, isDelayed });
  };
  const create = async () =>
    (await knownRun(app, context, { content, ...input })) ?? accept(await createSession(store, context));
  const place = await inOrder(app, context, async () => {
    const session = await find();
    if (session !== null) return { session };
    if (input.idempotencyKey === undefined) return { accepted: await create() };
    return { accepted: await queuesOf(runs).requests.run(input.runId, create) };
  });
  return "accepted" in place ? place.accepted : accept(place.session);
}

export type EditingApp = Pick<App, "store" | "runs" | "agents" | "models">;

/**
 * Replaces the text of a queued message and keeps its images. Returns `null` if the run is unknown. Throws `conflict`
 * if the run has started or if its text is neither the expected text nor the new text.
 */
export async function editMessage(
  app: EditingApp,
  run: Run,
  text: string,
  expectedText?: string,
): Promise<Run | null> {
  const { message, session, options } = run;
  const before = "content" in message ? (message.content as Content) : "";
  const images = typeof before === "string" ? [] : before.filter(isImage);
  const withText = (words: string) => {
    const texts = words.trim() === "" ? [] : [{ type: "text" as const, text: words }];
    return { ...message, content: images.length === 0 ? words : [...texts, ...images] } as MessageDraft & {
      readonly content: Content;
    };
  };
  const edited = withText(text);
  if (isEmpty(edited.content)) throw emptyMessage();
  await checkTextSize(text, async () => {
    const { agentId, key, sessionId } = session;
    const record = await app.store.sessions.get(scopeOfSession(session), sessionId);
    return modelWindow(app, agentId, key, options.model ?? record?.meta.model);
  });
  if (expectedText === undefined) return app.runs.edit(run.runId, edited);
  const written = typeof before === "string" ? before : textOf(before.filter((block) => !isImage(block)));
  return app.runs.edit(run.runId, edited, expectedText === written ? message : withText(expectedText));
}

/** Whether a block is an image, stored either in the message or as a blob. */
function isImage(block: object): boolean {
  const { type, skein } = block as { readonly type?: string; readonly skein?: TextBlock["skein"] };
  return type === "image" || skein?.blob?.was === "image";
}

function externalUser(sourceChannel: string | null): Provenance {
  return sourceChannel === null ? { kind: "external_user" } : { kind: "external_user", sourceChannel };
}

/** Whether this process has the agent that answers in the session. */
export function isServed(
  { agents, acp }: Pick<App, "agents" | "acp">,
  agentId: string,
  key: string,
): boolean {
  return isAcpKey(key) ? acp.serves(agentId, key) : agents.ids.includes(agentId);
}

/** Returns a session's model with its context window, or `null` if either is unknown. */
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
    return null; // The run reports the problem with the model.
  }
}

/** An app's queues for input that this process accepts. */
interface AcceptQueues {
  /** Keyed by session. Messages are accepted in the order in which the process sends them. */
  readonly arrivals: KeyedMutex;
  /** Keyed by run ID. A retry of a request that creates a session waits for the first attempt and returns its run. */
  readonly requests: KeyedMutex;
}

/**
 * Runs the calls for one session in order. A store on this machine needs no queue, because its lookups already run in
 * call order.
 */
function inOrder<T>(
  { store, runs }: Pick<App, "store" | "runs">,
  { userId, key }: SessionTarget,
  act: () => Promise<T>,
): Promise<T> {
  return store.work.shared === null ? act() : queuesOf(runs).arrivals.run(`${userId}\n${key}`, act);
}

const queuesByApp = new WeakMap<object, AcceptQueues>();

function queuesOf(runs: object): AcceptQueues {
  const queues = queuesByApp.get(runs) ?? { arrivals: new KeyedMutex(), requests: new KeyedMutex() };
  queuesByApp.set(runs, queues);
  return queues;
}

/** Returns the run of an earlier attempt at the same request, so that a retry does not create the session again. */
async function knownRun(
  { runs }: Pick<App, "runs">,
  context: SessionTarget,
  { content, ...input }: OutsideInput,
): Promise<Accepted | null> {
  if (input.idempotencyKey === undefined) return null;
  const run = await runs.get(input.runId, context.userId);
  if (run === null) return null;
  checkRepeatedInput(run, { ...input, message: { role: "user", content } }, context.key);
  runs.adoptRequest(run);
  return { run, isNew: false };
}

/** In characters. Text up to this length fits in any model's window, so the session's model is not looked up. */
const fitsEveryWindow = minContextWindow;

/**
 * Throws `message_too_large` if the text alone exceeds the window of the model that would read it. No request could
 * contain such text. Every entry point checks this before writing anything.
 */
export async function checkTextSize(
  text: string,
  findWindow: () => ModelWindow | null | Promise<ModelWindow | null>,
): Promise<void> {
  if (text.length <= fitsEveryWindow) return;
  const window = await findWindow();
  // Text never has more tokens than characters, and counting tokens is slower than checking the length.
  if (window === null || text.length <= window.contextWindow) return;
  const tokens = estimateTokens([{ role: "user", content: text }]);
  if (tokens > window.contextWindow) throw new SkeinError("message_too_large", { tokens, ...window });
}

/** Returns the context's session, creating it if it does not exist. ACP sessions are created only by a spawn. */
export async function sessionFor(store: Store, context: SessionTarget): Promise<SessionRecord> {
  return (await findFor(store, context)) ?? createSession(store, context);
}

async function createSession(store: Store, context: SessionTarget): Promise<SessionRecord> {
  if (isAcpKey(context.key)) return noSuchSession(context.key);
  const { userId, agentId, key, sessionId, cwd, channel, delivery } = context;
  const meta: SessionMeta = present({ channel, delivery });
  const scope = { agentId, ...present({ userId }) };
  const init = { key, cwd, meta };
  try {
    return await store.sessions.create(scope, { ...init, ...present({ sessionId }) });
  } catch (error) {
    if (!(error instanceof SkeinError) || error.code !== "conflict") throw error;
    // Another caller has created it since the lookup.
    const made = await findFor(store, context);
    if (made !== null) return made;
    await refuseTrashed(store.sessions, scope, { agentId }, sessionId ?? key);
    const known = sessionId === null ? null : await store.sessions.get(present({ userId }), sessionId);
    // The ID still belongs to the reset session, so the key's new session gets a different ID.
    if (known === null || parseKey(known.key).form !== "reset") throw error;
    return store.sessions.create(scope, init);
  }
}

/** Returns the session that holds the key. If there is none and an ID was given, returns the session with that ID. */
export async function findFor(store: Store, context: SessionTarget): Promise<SessionRecord | null> {
  const lookups: Lookup[] = [{ by: "key", key: context.key }, ...lookupsById(context)];
  return firstFound(store.sessions, scopeOfSession(context), lookups);
}

/** Like `findFor`, but without the session's settings, which are stored in its log. */
async function locateSession(store: App["store"], context: SessionTarget): Promise<SessionRef | null> {
  const holder = await store.work.locate(context.userId, context.key);
  if (holder?.agentId === context.agentId) return holder;
  return firstFound(store.sessions, scopeOfSession(context), lookupsById(context));
}

function lookupsById({ sessionId, agentId }: SessionTarget): Lookup[] {
  return sessionId === null ? [] : sessionIdLookups(sessionId, agentId);
}

export function withImages(
  text: string,
  images: readonly { readonly data: string; readonly mimeType: string }[] = [],
): Content {
  if (images.length === 0) return text;
  const shown = images.map(({ data, mimeType }) => ({ type: "image" as const, data, mimeType }));
  return [...(text.trim() === "" ? [] : [{ type: "text" as const, text }]), ...shown];
}

function emptyMessage(): SkeinError {
  return new SkeinError("invalid_arguments", {
    problem: "The message is empty",
    advice: "Write some text or attach an image",
  });
}

function isEmpty(content: Content): boolean {
  if (typeof content === "string") return content.trim() === "";
  return !content.some((block) => block.type === "image" || block.text.trim() !== "");
}

export function noSuchAgent(agentId: string): SkeinError {
  return new SkeinError("not_found", {
    what: "Agent",
    name: agentId,
    advice: "Define it with defineAgent or add it under agents in the configuration",
  });
}
