import type { AccessAction, AccessPolicy, AccessSettings } from "../access/visibility/access-policy.ts";
import { checkAgentPair, resolveAccessPolicy } from "../access/visibility/access-policy.ts";
import type {
  AccessAsker,
  AccessExplanation,
  AccessTarget,
  FailedLookup,
} from "../access/visibility/decide-access.ts";
import { createTreeCheck, explainAccess } from "../access/visibility/decide-access.ts";
import type { Refusal } from "../access/visibility/refusal.ts";
import { refuseAmbiguous, refuseMissing } from "../access/visibility/refusal.ts";
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

/** Who asks: an agent of a user, and the session that it speaks from. */
export interface Asker {
  readonly userId: string | null;
  readonly agentId: string;
  /** `null`: it speaks from no session; then nothing is itself, and nothing is in its tree. */
  readonly session: SessionRecord | null;
  readonly sandboxed: boolean;
}

/** `ambiguous` names the candidates that the asker may see, and no others. */
export type Denied = Refusal;

export type Found = { readonly session: SessionRecord } | { readonly refusal: Denied };

/** Where a reference may point beside what `resolveReference` says. */
export interface FindOptions {
  /** As a label of this agent, and as nothing else. */
  readonly label?: { readonly agentId: string };
}

/** A session that sets something off in others, in the middle of a run or from outside of any. */
export interface Caller extends Asker {
  /** `null`: a person, a program or an external loop acts for the session. Then a new root begins. */
  readonly run: Run | null;
  /**
   * Names what this call sets off: the same one again finds what the first has done. In a run it follows from session,
   * assistant entry and tool call; outside, from the caller's idempotency key, else it is fresh.
   */
  readonly callId: string;
  /** The entry of the message that made the call; `null`: there is none. */
  readonly entryId: string | null;
  readonly signal: AbortSignal;
  /** An operator reads the result. Left out: a model does. */
  readonly isOperator?: boolean;
  /** The slot is free meanwhile. */
  readonly whileWaiting: ToolCallContext["whileWaiting"];
}

/** Who may reach which sessions: one order of checks for every tool and surface. */
export interface SessionAccess {
  policyFor(asker: Asker): AccessPolicy;
  /** The session that a reference means, if the asker may do this with it. A failed lookup is a refusal, never a throw. */
  find(asker: Asker, reference: string, action: AccessAction, options?: FindOptions): Promise<Found>;
  /** The same for a session that is known already. `null`: it may. */
  check(asker: Asker, session: SessionRecord, action: AccessAction): Promise<Denied | null>;
  /** All that the asker may do this with, for lists and searches. */
  reach(asker: Asker, action: AccessAction): Promise<SessionReach>;
  /** The decision with every rule that it went through. */
  explain(asker: Asker, reference: string, action: AccessAction): Promise<AccessExplanation>;
  /** The short form of a key for this asker. */
  display(asker: Asker, key: string): string;
}

export interface SessionAccessDeps {
  readonly store: { readonly sessions: SessionFinder & Pick<SessionStore, "agentIds"> };
  /** Asked anew for every question. */
  settings(): AccessSettings;
  /** `global`: main is the one session that all senders share. */
  readonly scope: "per-sender" | "global";
}

export function createSessionAccess(deps: SessionAccessDeps): SessionAccess {
  return new StoreAccess(deps);
}

/** What was decided, and of which session; `null`: of none, or of several. */
interface Judged {
  readonly session: SessionRecord | null;
  readonly explanation: AccessExplanation;
}

class StoreAccess implements SessionAccess {
  readonly #deps: SessionAccessDeps;

  constructor(deps: SessionAccessDeps) {
    this.#deps = deps;
  }

  policyFor(asker: Asker): AccessPolicy {
    const sandboxed = asker.sandboxed || asker.session?.meta.sandboxed === true;
    return resolveAccessPolicy(this.#deps.settings(), { agentId: asker.agentId, sandboxed });
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
    // What is allowed is one session; were it none, that must not become an allowance.
    return session === null ? { refusal: refuseMissing(reference) } : { session };
  }

  async check(asker: Asker, session: SessionRecord, action: AccessAction): Promise<Denied | null> {
    const { decision } = await this.#explainOne(asker, session.key, action, targetOf(session));
    return decision.allowed ? null : decision;
  }

  async reach(asker: Asker, action: AccessAction): Promise<SessionReach> {
    const { sessions } = this.#deps.store;
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
   * The first lookup that finds one that the asker may see decides, so that no session it may not see can hide one that
   * it may. Where none does, the first one found is refused as what it is, and several as none at all.
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
      const found = await findCurrent(this.#deps.store.sessions, scopeOf(asker), lookup);
      return found.filter(({ key }) => key !== "unknown");
    } catch (failed) {
      return { failed };
    }
  }

  async #spawnerOf(asker: Asker, key: string): Promise<string | null> {
    const [spawned] = await this.#deps.store.sessions.find(scopeOf(asker), { by: "key", key });
    return spawned?.meta.spawnedBy ?? null;
  }

  #lookups(asker: Asker, reference: string, { label }: FindOptions): readonly Lookup[] {
    if (label === undefined) return referenceLookups(reference, this.#namer(asker));
    const agentId = readAgentId(label.agentId);
    return agentId === null ? [] : [{ by: "label", label: reference, agentId }];
  }

  #namer(asker: Asker): Namer {
    return { agentId: asker.agentId, scope: this.#deps.scope, ...present({ key: ownKey(asker) }) };
  }
}

/** A lineage within a store has an end, or goes round: no other bound, so that lists and single questions agree. */
const wholeLineage = Number.POSITIVE_INFINITY;

/** `null`: nothing among them that the asker may see. */
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

/** What nobody is ever shown is not there. */
function targetOf({ userId, agentId, key, meta }: SessionRecord): AccessTarget | null {
  return key === "unknown" ? null : { userId, agentId, key, spawnedBy: meta.spawnedBy ?? null };
}

/** One that speaks from `unknown`, or from another user's session, speaks from none. */
function ownKey({ userId, session }: Asker): string | null {
  return session === null || session.userId !== userId || session.key === "unknown" ? null : session.key;
}

/** The user's sessions, and nobody else's. */
function scopeOf({ userId }: Asker): Scope {
  return userId === null ? {} : { userId };
}

/** All that a policy lets an asker do this with: the same sessions that single questions allow, as a store filters by. */
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
  // Whatever is neither of the wider words is the narrow one.
  const isWide = visibility === "agent" || visibility === "all";
  if (policy.sandboxed || !isWide) return { treeOf, agentIds: [] };
  if (visibility === "agent" || !policy.agentToAgent.enabled) return { treeOf, agentIds: [own] };
  const others = (await agentsOfUser()).filter(
    (agentId) => agentId !== own && checkAgentPair(policy.agentToAgent, own, agentId).allowed,
  );
  return { treeOf, agentIds: [own, ...others] };
}

/** Whether a session, or its agent, is kept from everything outside the session's own tree. */
export function isSandboxed(
  { agents, config }: { readonly agents: Pick<Agents, "find">; readonly config: Config },
  { agentId, meta }: Pick<SessionRecord, "agentId" | "meta">,
): boolean {
  return (
    meta.sandboxed === true || (agents.find(agentId)?.sandboxed ?? agentSettings(config, agentId).sandboxed)
  );
}

/** A session that asks about others. */
export function askerOf(app: Parameters<typeof isSandboxed>[0], session: SessionRecord): Asker {
  const { userId, agentId } = session;
  return { userId, agentId, session, sandboxed: isSandboxed(app, session) };
}
