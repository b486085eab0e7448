import { isAbsolute } from "node:path";
import { SkeinError } from "../core/errors.ts";
import type { CwdChoice } from "../file-access/file-boundary.ts";
import type { Run } from "../runs/contract.ts";
import type { SessionMeta, SessionRecord, Store } from "../store/contract.ts";
import { contextIn } from "../store/spaces.ts";

/**
 * Identifies the user, agent and session for a call, and how the call is made. Every call receives its context
 * explicitly. `null` means not set.
 */
export interface RuntimeContext {
  /** Defaults to the unnamed user. */
  readonly userId?: string | null;
  readonly agentId?: string | null;
  readonly sessionKey?: string | null;
  readonly sessionId?: string | null;
  /**
   * A store to use instead of Skein's own, or the name of a store in `createSkein({ stores })`. Sessions in different
   * stores can never reach each other.
   */
  readonly store?: Store | string | null;
  /**
   * The folders for the user's sessions, from the root down. Defaults to `users` and the user ID. Sessions in different
   * namespaces can never reach each other, regardless of their keys. A folder belongs to one user.
   */
  readonly namespace?: readonly string[] | null;
  readonly channel?: string | null;
  readonly delivery?: Delivery | null;
  /** An absolute path. */
  readonly cwd?: string | null;
}

export type Delivery = NonNullable<SessionMeta["delivery"]>;

/** Returns a session's context for hooks. If `run` has a delivery target, the target replaces the session's. */
export function contextOfSession(
  store: Store,
  { userId, agentId, key: sessionKey, sessionId, cwd, meta }: SessionRecord,
  run: Run | null = null,
): RuntimeContext {
  const deliverTo = run?.options.deliverTo;
  const channel = deliverTo?.channel ?? meta.channel ?? null;
  const delivery = deliverTo ?? meta.delivery ?? null;
  return { ...contextIn(store, userId), agentId, sessionKey, sessionId, cwd, channel, delivery };
}

/** Returns the working directory for a new session. Throws `invalid_arguments` if the requested one is not allowed. */
export function chosenCwd(wanted: string | null, resolveCwd: (wanted: string | null) => CwdChoice): string {
  if (wanted !== null && !isAbsolute(wanted)) {
    const problem = `The working directory "${wanted}" is not absolute`;
    throw new SkeinError("invalid_arguments", { problem, advice: "Resolve it to an absolute path first" });
  }
  const choice = resolveCwd(wanted);
  if ("cwd" in choice) return choice.cwd;
  const refused = refusedCwd[choice.refusal === "in_root_folder" ? "inRoot" : "outside"];
  throw new SkeinError("invalid_arguments", {
    problem: `The working directory "${wanted}" ${refused.problem}`,
    advice: refused.advice,
  });
}

const refusedCwd = {
  inRoot: {
    problem: "is inside Skein's root folder",
    advice: "Choose a folder outside the root folder, or none to use the agent's default",
  },
  outside: {
    problem: "is not a folder that this agent is allowed to work in",
    advice: "Choose a folder inside agents.<id>.roots or agents.<id>.cwd, or none to use the agent's default",
  },
} as const;
