import type { AccessAction, AccessPolicy } from "../../access/visibility/access-policy.ts";
import type { AccessExplanation } from "../../access/visibility/decide-access.ts";
import type { Refusal } from "../../access/visibility/refusal.ts";
import type { SessionReach, SessionRecord } from "../../store/contract.ts";

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
