import type { AccessAction, AccessPolicy, AccessSettings } from "../access/visibility/access-policy.ts";
import { checkAgentPair, resolveAccessPolicy } from "../access/visibility/access-policy.ts";
import type {
  AccessAsker,
  AccessExplanation,
  AccessTarget,
  FailedLookup,
  Refusal,
} from "../access/visibility/decide-access.ts";
import {
  createTreeCheck,
  explainAccess,
  refuseAmbiguous,
  refuseMissing,
} from "../access/visibility/decide-access.ts";
import type { ToolCallContext } from "../agents/contract.ts";
import { agentSettings } from "../config/agent-settings.ts";
import type { Config } from "../config/sections/all.ts";
import { readAgentId } from "../core/names.ts";
import { present } from "../core/present.ts";
import type { Lookup, Asker as Namer } from "../core/references.ts";
import { displayKey, referenceLookups } from "../core/references.ts";
import type { Run } from "../runs/contract.ts";
import type { Scope, SessionReach, SessionRecord, SessionStore } from "../store/contract.ts";
import type { Agents } from "./agents.ts";
import type { SessionFinder } from "./find-session.ts";
import { findCurrent } from "./find-session.ts";

/** The agent that requests access, its user, and the session it acts from. */
export interface Asker {
  readonly userId: string | null;
  readonly agentId: string;
  /** `null` if the requester has no session. No session is then its own or in its tree. */
  readonly session: SessionRecord | null;
  readonly sandboxed: boolean;
}

/** With the code `ambiguous`, lists only candidates that the requester is allowed to see. */
export type Denied = Refusal;

export type Found = { readonly session: SessionRecord } | { readonly refusal: Denied };

/** Restricts which sessions a reference can name. */
interface FindOptions {
  /** Matches only the labels of this agent's sessions. */
  readonly label?: { readonly agentId: string };
}

/** The caller of a session tool, inside or outside a run. */
export interface Caller extends Asker {
  /** `null` if the call comes from outside a run and starts a new root. */
  readonly run: Run | null;
  /**
   * Identifies whatever this call starts, so that a retried call can find it. Inside a run, it is derived from the
   * session, the assistant entry and the tool call. Outside a run, it is derived from the idempotency key, or random if
   * there is none.
   */
  readonly callId: string;
  /** The entry that contains the call, or `null` if there is none. */
  readonly entryId: string | null;
  readonly signal: AbortSignal;
  /** `true` if the result is for an operator rather than a model. */
  readonly isOperator?: boolean;
  /** Frees the run's slot while waiting. */
  readonly whileWaiting: ToolCallContext["whileWaiting"];
}

/** Decides which sessions a requester can reach. All tools and gateway methods use it. */
export interface SessionAccess {
  policyFor(asker: Asker): AccessPolicy;
  /**
   * Returns the session that a reference names if the requester is allowed to perform the action on it. A failed lookup
   * is a refusal, not an error.
   */
  find(asker: Asker, reference: string, action: AccessAction, options?: FindOptions): Promise<Found>;
  /** Like `find`, but for a known session. Returns `null` if access is allowed. */
  check(asker: Asker, session: SessionRecord, action: AccessAction): Promise<Denied | null>;
  /** Returns all sessions on which the requester is allowed to perform the action, for lists and searches. */
  reach(asker: Asker, action: AccessAction): Promise<SessionReach>;
  /** Returns the decision with every rule that was applied. */
  explain(asker: Asker, reference: string, action: AccessAction): Promise<AccessExplanation>;
  /** Returns the short form of a key, as this requester can write it. */
  display(asker: Asker, key: string): string;
}

interface AccessSource {
  readonly store: { readonly sessions: SessionFinder & Pick<SessionStore, "agentIds"> };
  /** Called for every decision, because the configuration can be reloaded. */
  settings(): AccessSettings;
  /** With `global`, the main session is the one that all senders share. */
  readonly scope: "per-sender" | "global";
}

export function createSessionAccess(source: AccessSource): SessionAccess {
  return new StoreAccess(source);
}

/** A decision and the session it applies to. `session` is `null` if no session or several sessions match. */
interface Judged {
  readonly session: SessionRecord | null;
  readonly explanation: AccessExplanation;
}

class StoreAccess implements SessionAccess {
  readonly #source: AccessSource;

  constructor(source: AccessSource) {
    this.#source = source;
  }

  policyFor(asker: Asker): AccessPolicy {
    const sandboxed = asker.sandboxed || asker.session?.meta.sandboxed === true;
    return resolveAccessPolicy(this.#source.settings(), { agentId: asker.agentId, sandboxed });
  }

  async find(
    asker: Asker,
    reference: string,
    action: AccessAction,
    options: FindOptions = {},
  ): Promise<Found> {
    const lookups = this.#lookups(asker, reference, options);
    const { session, explanation } = await this.#judge(asker, reference, action, lookups);
    if (!explanation.decision.allowed) return { refusal: explanation.decision };
    // An allowed decision always has one session. A decision without a session must not allow anything.
    return session === null ? { refusal: refuseMissing(reference) } : { session };
  }

  async check(asker: Asker, session: SessionRecord, action: AccessAction): Promise<Denied | null> {
    const { decision } = await this.#explainOne(asker, session.key, action, targetOf(session));
    return decision.allowed ? null : decision;
  }

  async reach(asker: Asker, action: AccessAction): Promise<SessionReach> {
    const { sessions } = this.#source.store;
    const { agentId } = asker;
    return reachBy(this.policyFor(asker), action, { agentId, key: ownKey(asker) }, () =>
      sessions.agentIds(scopeOf(asker)),
    );
  }

  async explain(asker: Asker, reference: string, action: AccessAction): Promise<AccessExplanation> {
    const lookups = this.#lookups(asker, reference, {});
    return (await this.#judge(asker, reference, action, lookups)).explanation;
  }

  display(asker: Asker, key: string): string {
    return displayKey(key, this.#namer(asker));
  }

  /**
   * Uses the first lookup that finds a session visible to the requester, so that no other session can hide that
   * session. If there is no such lookup, a single match is refused with its reason, and several matches are refused as
   * not found.
   */
  async #judge(
    asker: Asker,
    reference: string,
    action: AccessAction,
    lookups: readonly Lookup[],
  ): Promise<Judged> {
    const explain = (target: AccessTarget | FailedLookup | null) =>
      this.#explainOne(asker, reference, action, target);
    let refused: Judged | null = null;
    for (const lookup of lookups) {
      const found = await this.#lookUp(asker, lookup);
      if ("failed" in found) return { session: null, explanation: await explain(found) };
      const judged: Judged[] = [];
      for (const session of found) judged.push({ session, explanation: await explain(targetOf(session)) });
      const decided = decidedAmong(reference, judged);
      if (decided !== null) return decided;
      if (judged.length === 1) refused ??= judged[0] ?? null;
      else if (judged.length > 1) refused ??= { session: null, explanation: await explain(null) };
    }
    return refused ?? { session: null, explanation: await explain(null) };
  }

  #explainOne(
    asker: Asker,
    reference: string,
    action: AccessAction,
    target: AccessTarget | FailedLookup | null,
  ): Promise<AccessExplanation> {
    const { userId, agentId } = asker;
    const who: AccessAsker = { userId, agentId, key: ownKey(asker) };
    const isInTree = createTreeCheck((key) => this.#spawnerOf(asker, key), wholeLineage);
    return explainAccess(who, target, action, this.policyFor(asker), { reference, isInTree });
  }

  async #lookUp(asker: Asker, lookup: Lookup): Promise<readonly SessionRecord[] | FailedLookup> {
    try {
      const found = await findCurrent(this.#source.store.sessions, scopeOf(asker), lookup);
      return found.filter(({ key }) => key !== "unknown");
    } catch (failed) {
      return { failed };
    }
  }

  async #spawnerOf(asker: Asker, key: string): Promise<string | null> {
    const [spawned] = await this.#source.store.sessions.find(scopeOf(asker), { by: "key", key });
    return spawned?.meta.spawnedBy ?? null;
  }

  #lookups(asker: Asker, reference: string, { label }: FindOptions): readonly Lookup[] {
    if (label === undefined) return referenceLookups(reference, this.#namer(asker));
    const agentId = readAgentId(label.agentId);
    return agentId === null ? [] : [{ by: "label", label: reference, agentId }];
  }

  #namer(asker: Asker): Namer {
    return { agentId: asker.agentId, scope: this.#source.scope, ...present({ key: ownKey(asker) }) };
  }
}

/** A lineage either ends or repeats, so no limit is needed. Lists have no limit either, and the two must agree. */
const wholeLineage = Number.POSITIVE_INFINITY;

/** Returns `null` if the requester is not allowed to see any of them. */
function decidedAmong(reference: string, judged: readonly Judged[]): Judged | null {
  const failed = judged.find(({ explanation: { decision } }) => isFailure(decision));
  if (failed !== undefined) return failed;
  const seen = judged.filter(({ explanation }) => explanation.decision.allowed);
  if (seen.length < 2) return seen[0] ?? null;
  const keys = seen.flatMap(({ session }) => (session === null ? [] : [session.key]));
  const decision = refuseAmbiguous(reference, keys.sort());
  const steps = [{ rule: "lookup", outcome: "refuse", reason: decision.error }] as const;
  return { session: null, explanation: { decision, steps } };
}

function isFailure(decision: AccessExplanation["decision"]): boolean {
  return !decision.allowed && decision.code === "lookup_failed";
}

/** Returns `null` for the session `unknown`, which is never shown. */
function targetOf({ userId, agentId, key, meta }: SessionRecord): AccessTarget | null {
  return key === "unknown" ? null : { userId, agentId, key, spawnedBy: meta.spawnedBy ?? null };
}

/** Returns `null` for a requester in `unknown` or in another user's session. */
function ownKey({ userId, session }: Asker): string | null {
  return session === null || session.userId !== userId || session.key === "unknown" ? null : session.key;
}

/** Returns the scope of the requester's user. */
function scopeOf({ userId }: Asker): Scope {
  return userId === null ? {} : { userId };
}

/**
 * Returns all sessions on which a policy allows an action, as a store filter. The filter agrees with the individual
 * decisions.
 */
export async function reachBy(
  policy: AccessPolicy,
  action: AccessAction,
  asker: { readonly agentId: string; readonly key: string | null },
  agentsOfUser: () => Promise<readonly string[]>,
): Promise<SessionReach> {
  const treeOf = asker.key;
  const own = readAgentId(asker.agentId) ?? asker.agentId;
  const visibility = policy.visibility[action];
  if (visibility === "self") return { treeOf, descendants: false, agentIds: [] };
  // Any other value is treated as the most restrictive one.
  const isWide = visibility === "agent" || visibility === "all";
  if (policy.sandboxed || !isWide) return { treeOf, agentIds: [] };
  if (visibility === "agent" || !policy.agentToAgent.enabled) return { treeOf, agentIds: [own] };
  const others = (await agentsOfUser()).filter(
    (agentId) => agentId !== own && checkAgentPair(policy.agentToAgent, own, agentId).allowed,
  );
  return { treeOf, agentIds: [own, ...others] };
}

/** Whether a session or its agent is isolated from everything outside the session's own tree. */
export function isSandboxed(
  { agents, config }: { readonly agents: Pick<Agents, "find">; readonly config: Config },
  { agentId, meta }: Pick<SessionRecord, "agentId" | "meta">,
): boolean {
  return (
    meta.sandboxed === true || (agents.find(agentId)?.sandboxed ?? agentSettings(config, agentId).sandboxed)
  );
}

/** Returns the requester for a session. */
export function askerOf(app: Parameters<typeof isSandboxed>[0], session: SessionRecord): Asker {
  const { userId, agentId } = session;
  return { userId, agentId, session, sandboxed: isSandboxed(app, session) };
}
