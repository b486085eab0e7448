import { SkeinError } from "../../core/errors.ts";
import { isAcpKey } from "../../core/keys.ts";
import type { Content, Provenance } from "../../core/messages.ts";
import { present } from "../../core/present.ts";
import type {
  Accepted,
  InputKind,
  QueueMode,
  RunOptions,
  RunSession,
  RunStore,
} from "../../runs/contract.ts";
import type { Scope, SessionMeta, SessionRecord, Store } from "../../store/contract.ts";
import { noSuchSession } from "../../store/refusals.ts";
import { withBlobs } from "../guard/guarded-append.ts";
import type { ResolvedContext } from "../runtime-context.ts";

export interface AcceptDeps {
  readonly store: Store;
  readonly runs: Pick<RunStore, "accept">;
  /** Whether there is an agent for such a session; left out: all there are. */
  serves?(agentId: string, key: string): boolean;
}

/** Something said to a session from outside. */
export interface OutsideInput {
  readonly kind: Extract<InputKind, "user" | "channel" | "cron">;
  readonly content: Content;
  readonly runId: string;
  readonly idempotencyKey?: string;
  readonly queueMode: QueueMode;
  readonly options?: RunOptions;
  readonly provenance?: Provenance;
}

/**
 * Takes input in. A well-formed key makes its session; what is large goes to blobs first; then the input is durable, and
 * waits for its turn.
 */
export async function acceptInput(
  { store, runs, serves = () => true }: AcceptDeps,
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
  const session = await sessionFor(store, context);
  const message = await withBlobs(store, scopeOf(session), { role: "user", content });
  return runs.accept({ session: runSession(session), message, ...input });
}

/** The session that a context means; made where there is none. One of somebody else's agent is made by a spawn alone. */
export async function sessionFor(store: Store, context: ResolvedContext): Promise<SessionRecord> {
  const known = await findFor(store, context);
  if (known !== null) return known;
  if (isAcpKey(context.sessionKey)) return noSuchSession(context.sessionKey);
  const { userId, agentId, sessionKey, sessionId, cwd, channel, delivery } = context;
  const meta: SessionMeta = present({ channel, delivery });
  try {
    const init = { key: sessionKey, cwd, meta, ...present({ sessionId }) };
    return await store.sessions.create({ agentId, ...present({ userId }) }, init);
  } catch (error) {
    // Somebody was quicker.
    const made =
      error instanceof SkeinError && error.code === "conflict" ? await findFor(store, context) : null;
    if (made === null) throw error;
    return made;
  }
}

/** By its id where one is given: a session may have another key by now. */
export async function findFor(
  store: Store,
  { userId, agentId, sessionKey, sessionId }: ResolvedContext,
): Promise<SessionRecord | null> {
  const scope: Scope = { agentId, ...present({ userId }) };
  if (sessionId !== null) {
    const found = await store.sessions.get(scope, sessionId);
    if (found !== null) return found;
  }
  const [first] = await store.sessions.find(scope, { by: "key", key: sessionKey });
  return first ?? null;
}

export function runSession({ uid, userId, agentId, key, sessionId }: SessionRecord): RunSession {
  return { uid, userId, agentId, key, sessionId };
}

export function scopeOf({ userId, agentId }: SessionRecord): Scope & { readonly agentId: string } {
  return { agentId, ...present({ userId }) };
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
