import { refuseAmbiguous, refuseFailedLookup } from "../access/visibility/decide-access.ts";
import { SkeinError } from "../core/errors.ts";
import { readKey } from "../core/keys.ts";
import { parseAgentId } from "../core/names.ts";
import { present } from "../core/present.ts";
import { inLine } from "../core/text.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { App } from "./app.ts";
import type { Caller, Denied, SessionAccess } from "./session-access.ts";
import { isGivenLabel } from "./spawn-request.ts";

type Target = { readonly session: SessionRecord } | { readonly refusal: SendRefusal };
type TargetApp = Pick<App, "access" | "config" | "store">;

/** Returns the session that a message addresses, if the caller is allowed to send to it. Creates nothing. */
export async function sendTarget(app: TargetApp, caller: Caller, request: SendRequest): Promise<Target> {
  const { sessionKey, label } = request;
  if (sessionKey !== undefined && label !== undefined) {
    return { refusal: unfit("Provide either sessionKey or label (not both).") };
  }
  const agentId = request.agentId === undefined ? null : readAgent(request.agentId);
  if (agentId !== null && typeof agentId !== "string") return agentId;
  if (label !== undefined) return withinLookupTime(byLabel(app, caller, label, agentId));
  if (sessionKey !== undefined) return byKey(app, caller, sessionKey, agentId);
  if (agentId === null) return { refusal: unfit("Either sessionKey or label is required") };
  const main = app.config.session.scope === "global" ? "global" : `agent:${agentId}:main`;
  return byKey(app, caller, main, null);
}

const lookupSeconds = 10;

/** Limits the lookup time so that an unresponsive store cannot block the run. */
async function withinLookupTime(lookup: Promise<Target>): Promise<Target> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Target>((resolve) => {
    const cause = new Error(`the store did not respond within ${lookupSeconds} seconds`);
    timer = setTimeout(
      () => resolve({ refusal: refusalOf(refuseFailedLookup(cause)) }),
      lookupSeconds * 1000,
    );
  });
  try {
    return await Promise.race([lookup, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function byKey(
  { access }: TargetApp,
  caller: Caller,
  reference: string,
  agentId: string | null,
): Promise<Target> {
  const found = await access.find(caller, reference, "send");
  if ("refusal" in found) return refusedKey(access, caller, reference, found.refusal);
  const { session } = found;
  const sessionKey = access.display(caller, session.key);
  if (agentId !== null && session.agentId !== agentId) {
    const error = `${inLine(reference)} belongs to agent ${session.agentId}, not to ${agentId}. Omit agentId, or use the full sessionKey of the session you mean.`;
    return { refusal: { ...unfit(error), sessionKey } };
  }
  return notItself(access, caller, session);
}

/** Returns a refusal that repeats only the caller's own reference and thus reveals nothing about other sessions. */
function refusedKey(access: SessionAccess, caller: Caller, reference: string, refusal: Denied): Target {
  const named = "problem" in readKey(reference) ? reference : access.display(caller, reference);
  const isNamed = refusal.status === "forbidden";
  return { refusal: { ...refusalOf(refusal), ...(isNamed ? { sessionKey: named } : {}) } };
}

async function byLabel(app: TargetApp, caller: Caller, label: string, named: string | null): Promise<Target> {
  const { access } = app;
  const agentId = named ?? caller.agentId;
  if (caller.sandboxed && agentId !== caller.agentId) {
    const error = "Sandboxed sessions_send label lookup is limited to this agent";
    return { refusal: { status: "forbidden", code: "sandbox_restricted", error } };
  }
  const found = await access.find(caller, label, "send", { label: { agentId } });
  if ("session" in found) return notItself(access, caller, found.session);
  if (found.refusal.code === "lookup_failed") return { refusal: refusalOf(found.refusal) };
  const children = await childrenByLabel(app, caller, label, named);
  const [child, another] = children;
  if (another !== undefined) {
    const keys = children.map(({ key }) => access.display(caller, key));
    return { refusal: refusalOf(refuseAmbiguous(label, keys.toSorted())) };
  }
  if (child !== undefined) return { session: child };
  const refusal = refusalOf(found.refusal);
  if (refusal.code !== "not_found") return { refusal };
  return { refusal: { ...refusal, error: `No session found with label: ${inLine(label)}` } };
}

const maxChildren = 200;

/**
 * Returns the caller's children that have this label, regardless of their agent. A parent can reach its children
 * regardless of its visibility. An exact match takes precedence over labels with a suffix.
 */
async function childrenByLabel(
  { store }: TargetApp,
  { session, userId }: Caller,
  label: string,
  agentId: string | null,
): Promise<readonly SessionRecord[]> {
  if (session === null) return [];
  const scope = present({ userId, agentId });
  const { sessions } = await store.sessions.list(scope, { spawnedBy: session.key, limit: maxChildren });
  const children = sessions.filter(({ key, meta }) => {
    const parsed = readKey(key);
    return "spawnId" in parsed && isGivenLabel(meta.label ?? "", label, parsed.spawnId);
  });
  const exact = children.filter(({ meta }) => meta.label === label);
  return exact.length > 0 ? exact : children;
}

function notItself(access: SessionAccess, caller: Caller, session: SessionRecord): Target {
  if (session.uid !== caller.session?.uid) return { session };
  const error =
    "A session cannot send to itself, because it would wait for itself. Continue in your own turn, or name a different session.";
  return { refusal: { ...unfit(error), sessionKey: access.display(caller, session.key) } };
}

function readAgent(text: string): string | { readonly refusal: SendRefusal } {
  try {
    return parseAgentId(text);
  } catch (error) {
    if (!(error instanceof SkeinError)) throw error;
    return { refusal: { status: "error", code: error.code, error: error.message } };
  }
}

/** A message to another session. Strings are trimmed, and blank strings are treated as absent. */
export interface SendRequest {
  readonly sessionKey?: string;
  readonly label?: string;
  /**
   * If given alone, addresses this agent's main session. With a label, names the labeled session's agent. With a key,
   * must match the key.
   */
  readonly agentId?: string;
  readonly message: string;
  /** How long to wait for the reply, in seconds. If 0 or absent, the call does not wait. */
  readonly timeoutSeconds?: number;
  /** `assistant` writes the message as the target's own, without running a turn. */
  readonly role?: "user" | "assistant";
}

/** The result of a send. A rejected send has `code` and `error`. */
export type SendResult = {
  readonly runId: string;
  readonly status: "sent" | "ok" | "timeout" | "error" | "aborted" | "forbidden";
  /** The key as the caller would write it. */
  readonly sessionKey?: string;
  readonly reply?: string;
  readonly code?: string;
  readonly error?: string;
  readonly note?: string;
  /** The app that the target needs if none of the app's processes are running. */
  readonly waitsForApp?: string;
  readonly retryable?: boolean;
  /** For `budget_exceeded`: the limit and the amounts used. */
  readonly budget?: Readonly<Record<string, string | number>>;
  /** Set if the reply will arrive later as a message. */
  readonly delivery?: { readonly status: "pending"; readonly mode: "announce" };
};

/** A rejected send, without the run ID. */
export type SendRefusal = Pick<SendResult, "status" | "code" | "error" | "retryable" | "sessionKey">;

export const pendingDelivery = { status: "pending", mode: "announce" } as const;

export function unfit(error: string): SendRefusal {
  return { status: "error", code: "invalid_arguments", error };
}

export function refusalOf({ status, code, error, retryable }: Denied): SendRefusal {
  return { status, code, error, ...(retryable ? { retryable } : {}) };
}
