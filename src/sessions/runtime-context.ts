import { isAbsolute } from "node:path";
import { SkeinError } from "../core/errors.ts";
import type { CwdChoice } from "../file-access/file-boundary.ts";
import type { SessionMeta, Store } from "../store/contract.ts";

/**
 * For whom, where and how a call is made. It goes along with every call; there is no "current user" anywhere. `null` is
 * left open, so that a resolved context can be handed on.
 */
export interface RuntimeContext {
  /** No user id is the unnamed user. */
  readonly userId?: string | null;
  readonly agentId?: string | null;
  readonly sessionKey?: string | null;
  readonly sessionId?: string | null;
  /**
   * Another store than the Skein's own, or the name of one in `createSkein({ stores })`. Its sessions are a space of their
   * own: nothing leads from one store to another.
   */
  readonly store?: Store | string | null;
  /**
   * The folders of the user's sessions, from the root down; by default `users` and the user id. The sessions of two
   * namespaces never meet, whatever their keys. A folder has one user.
   */
  readonly namespace?: readonly string[] | null;
  readonly channel?: string | null;
  readonly delivery?: Delivery | null;
  /** Absolute. */
  readonly cwd?: string | null;
}

export type Delivery = NonNullable<SessionMeta["delivery"]>;

/** The working directory of a new session; throws `invalid_arguments` where the wanted one is not allowed. */
export function chosenCwd(wanted: string | null, resolveCwd: (wanted: string | null) => CwdChoice): string {
  if (wanted !== null && !isAbsolute(wanted)) {
    const problem = `The working directory "${wanted}" is not absolute`;
    throw new SkeinError("invalid_arguments", { problem, advice: "Resolve it before you pass it" });
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
    advice: "Choose a folder outside of it, or leave it out for the agent's default",
  },
  outside: {
    problem: "is not a folder that this agent may work in",
    advice: "Choose a folder inside agents.<id>.roots or agents.<id>.cwd, or leave it out",
  },
} as const;
