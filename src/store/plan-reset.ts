import { SkeinError } from "../core/errors.ts";
import { formatKey, parseKey } from "../core/keys.ts";
import { parseSessionId } from "../core/names.ts";
import type { MetaPatch, SessionInit, SessionMeta, SessionRecord } from "./contract.ts";

/** What a reset comes to, the same in every store. */
export interface ResetPlan {
  /** Of the old session: it gives up its key, which `resetFrom` remembers, and its label. */
  readonly changes: MetaPatch & { readonly key: string };
  /** The new one has both, and all other metadata except `archived` and where the entries came from. */
  readonly fresh: SessionInit;
}

/** Refuses a session that was reset before, and a new id that is none: both while nothing has changed. */
export function planReset(
  { key, agentId, sessionId, cwd, meta }: SessionRecord,
  options: { readonly sessionId?: string },
): ResetPlan {
  if (parseKey(key).form === "reset") {
    throw new SkeinError("conflict", {
      problem: `Session ${sessionId} was reset before`,
      advice: "Reset the session that has its key now",
    });
  }
  if (options.sessionId !== undefined) parseSessionId(options.sessionId);
  const { archived: _archived, importedFrom: _importedFrom, ...kept } = meta;
  return {
    changes: {
      key: formatKey({ form: "reset", agentId, sessionId }),
      resetFrom: key,
      ...(meta.label === undefined ? {} : { label: null }),
    },
    fresh: { key, cwd, meta: kept as SessionMeta, ...options },
  };
}
