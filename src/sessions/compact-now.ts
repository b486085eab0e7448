import { SkeinError } from "../core/errors.ts";
import type { CompactedPayload } from "../protocol/session-changes.ts";
import type { Scope, SessionRecord, SessionStore } from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import { estimateTokens } from "../transcript/estimate-tokens.ts";
import { visibleMessage } from "../transcript/visible-message.ts";
import type { App } from "./app.ts";
import { compactSession } from "./compact.ts";
import type { CompactionOutcome } from "./compaction-summary.ts";
import { agentFor, checkIdle, modelLimits } from "./run-place.ts";
import { usualWindow } from "./turn-request.ts";

export interface CompactNowOptions {
  /** What the summary is to mind above all. */
  readonly instructions?: string;
  readonly signal?: AbortSignal;
}

/** Has a session summarized by the model that would answer in it. Not while a run has it: a turn is not cut in two. */
export async function compactNow(
  app: Pick<App, "store" | "hooks" | "models" | "config" | "agents" | "acp" | "runs">,
  session: SessionRecord,
  { instructions, signal = new AbortController().signal }: CompactNowOptions = {},
): Promise<CompactionOutcome> {
  const { models, config, runs } = app;
  checkIdle(runs, session);
  const model = models.turnModel(modelName(app, session));
  return compactSession(app, scopeOfSession(session), session, {
    summarize: models.summarizer(model, { signal, limits: modelLimits(config), onUsage: () => undefined }),
    contextWindow: model.info.contextWindow ?? usualWindow,
    mode: config.compaction.mode,
    maxHistoryShare: config.compaction.maxHistoryShare,
    trigger: "manual",
    signal,
    ...(instructions === undefined ? {} : { instructions }),
    fence: () => {
      checkIdle(runs, session);
      return true;
    },
  });
}

function modelName(app: Pick<App, "agents" | "acp">, session: SessionRecord): string {
  const { meta, agentId } = session;
  const model = meta.model ?? agentFor(app, session)?.model;
  if (model !== undefined) return model;
  const advice = "Add it to agents in the configuration, or set a model for the session";
  throw new SkeinError("not_found", { what: "Agent", name: agentId, advice });
}

/** Writes a compaction with a given summary. `conflict` when the session has changed meanwhile. */
export async function compactByHand(
  sessions: SessionStore,
  scope: Scope,
  { key, sessionId, leafId }: SessionRecord,
  { summary, keepFrom }: { readonly summary: string; readonly keepFrom: string },
): Promise<CompactedPayload> {
  if (summary.trim() === "") {
    throw new SkeinError("invalid_arguments", {
      problem: "The summary is empty",
      advice: "Say in it what was said before the first kept entry",
    });
  }
  const first = await sessions.entry(scope, sessionId, keepFrom);
  if (first?.type === "message" && first.message.role === "toolResult") {
    throw new SkeinError("invalid_arguments", {
      problem: `${keepFrom} is a tool result, and its call would be gone`,
      advice: "Keep from the message with the call, or from a later one",
    });
  }
  const context = (await sessions.context(scope, sessionId)) ?? noSuchSession(sessionId);
  const tokensBefore = estimateTokens(
    context.messages.map(visibleMessage).filter((message) => message !== null),
  );
  const draft = { type: "compaction", summary, firstKeptEntryId: keepFrom, tokensBefore } as const;
  const { entries } = await sessions.append(scope, sessionId, [{ draft }], { expectedLeafId: leafId });
  return { key, sessionId, entryId: entries[0]?.id ?? "", firstKeptEntryId: keepFrom, tokensBefore };
}
