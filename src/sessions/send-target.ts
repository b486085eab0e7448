import { refuseAmbiguous, refuseFailedLookup } from "../access/visibility/refusal.ts";
import { SkeinError } from "../core/errors.ts";
import { readKey } from "../core/keys.ts";
import { parseAgentId } from "../core/names.ts";
import { present } from "../core/present.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { App } from "./app.ts";
import type { Caller, Denied, SessionAccess } from "./session-access.ts";
import { isGivenLabel } from "./spawn-request.ts";

type Target = { readonly session: SessionRecord } | { readonly refusal: SendRefusal };
type TargetApp = Pick<App, "access" | "config" | "store">;

/** The session that a message is for, if the asker may send to it. Nothing is made. */
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

/** A store that gives no answer keeps no run waiting. */
async function withinLookupTime(lookup: Promise<Target>): Promise<Target> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Target>((resolve) => {
    const cause = new Error(`the store gave no answer within ${lookupSeconds} seconds`);
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
    const error = `${shown(reference)} is a session of agent ${session.agentId}, and agentId says ${agentId}. Leave agentId out, or use the full sessionKey of the session that you mean.`;
    return { refusal: { ...unfit(error), sessionKey } };
  }
  return notItself(access, caller, session);
}

/** What was refused is named as the asker named it: that says nothing about what is there. */
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
    return { refusal: refusalOf(refuseAmbiguous(shown(label), keys.toSorted())) };
  }
  if (child !== undefined) return { session: child };
  const refusal = refusalOf(found.refusal);
  if (refusal.code !== "not_found") return { refusal };
  return { refusal: { ...refusal, error: `No session found with label: ${shown(label)}` } };
}

const mostChildren = 200;

/**
 * The children that the asker gave this label, under whichever agent they run. A parent reaches them whatever its visibility
 * is. One that has exactly this label is meant before those whose label got an ending.
 */
async function childrenByLabel(
  { store }: TargetApp,
  { session, userId }: Caller,
  label: string,
  agentId: string | null,
): Promise<readonly SessionRecord[]> {
  if (session === null) return [];
  const scope = present({ userId, agentId });
  const { sessions } = await store.sessions.list(scope, { spawnedBy: session.key, limit: mostChildren });
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
    "A session cannot send to itself: it could only wait for itself. Go on in your own turn, or name another session.";
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

/** Text from outside inside a message. */
function shown(text: string): string {
  return escapeToLine(text.length > 300 ? `${cutText(text, 300)}…` : text);
}

/** A message to another session. Texts are trimmed; blank ones are left out. */
export interface SendRequest {
  readonly sessionKey?: string;
  readonly label?: string;
  /** Alone: this agent's main session. With a label: whose. With a key: to agree with it. */
  readonly agentId?: string;
  readonly message: string;
  /** How long the reply is waited for; 0 or left out: not at all. */
  readonly timeoutSeconds?: number;
  /** `assistant`: as the target's own words, without a turn. */
  readonly role?: "user" | "assistant";
}

/** The same for every asker and surface. A refusal is one too, with `code` and `error`. */
export type SendResult = {
  readonly runId: string;
  readonly status: "sent" | "ok" | "timeout" | "error" | "aborted" | "forbidden";
  /** As the asker would write it. */
  readonly sessionKey?: string;
  readonly reply?: string;
  readonly code?: string;
  readonly error?: string;
  readonly note?: string;
  /** The app without which the target cannot run; no process of it does now. */
  readonly waitsForApp?: string;
  readonly retryable?: boolean;
  /** Of `budget_exceeded`: the limit and the figures. */
  readonly budget?: Readonly<Record<string, string | number>>;
  /** The reply comes later, as a message of its own. */
  readonly delivery?: { readonly status: "pending"; readonly mode: "announce" };
};

/** A refusal without what every one has. */
export type SendRefusal = Pick<SendResult, "status" | "code" | "error" | "retryable" | "sessionKey">;

export const pendingDelivery = { status: "pending", mode: "announce" } as const;

export function unfit(error: string): SendRefusal {
  return { status: "error", code: "invalid_arguments", error };
}

export function refusalOf({ status, code, error, retryable }: Denied): SendRefusal {
  return { status, code, error, ...(retryable ? { retryable } : {}) };
}
