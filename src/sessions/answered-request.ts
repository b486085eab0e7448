import type { ContextOptions, SessionContext } from "../core/context.ts";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import type { Scope, SessionRecord } from "../store/contract.ts";
import type { ModelRef } from "../transcript/model-table.ts";
import type { BranchStore } from "./branch-pages.ts";
import { loadTree } from "./branch-pages.ts";

/**
 * The input from which the request for an earlier answer was built. The system prompt, tools and settings used at the
 * time are not stored.
 */
export interface AnsweredRequest {
  /** The model that answered. */
  readonly model: ModelRef;
  /** The time of the answer. */
  readonly at: number;
  /** Returns the context for the branch up to the answer. */
  context(options?: ContextOptions): SessionContext;
}

/** Finds an answer on any branch. Throws `not_found`, or `invalid_arguments` for an entry that is not an answer. */
export async function readAnsweredRequest(
  store: BranchStore,
  scope: Scope,
  session: Pick<SessionRecord, "userId" | "sessionId">,
  entryId: string,
): Promise<AnsweredRequest> {
  const tree = await loadTree(store, scope, session);
  // Throws `not_found`.
  const parentId = tree.parentOf(entryId)?.id ?? null;
  const entry = tree.entry(entryId);
  if (entry?.type !== "message" || entry.message.role !== "assistant") {
    const advice = "Use the ID of an assistant message";
    throw new SkeinError("invalid_arguments", { problem: `Entry ${entryId} is not an answer`, advice });
  }
  const { provider = "", model = "", api, timestamp } = entry.message;
  return {
    model: { provider, model, ...present({ api }) },
    at: timestamp ?? (Date.parse(entry.timestamp) || 0),
    context: (options) => tree.context(parentId, options),
  };
}
