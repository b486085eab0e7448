import { SkeinError } from "../../core/errors.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { scopeOfSession } from "../../store/rules.ts";
import { compactSession } from "../compact-session.ts";
import type { CompactionOutcome } from "../compaction-outcome.ts";
import type { RunningDeps } from "../running/contract.ts";
import { usualWindow } from "../running/turn-request.ts";

export interface CompactNowDeps
  extends Pick<RunningDeps, "store" | "hooks" | "models" | "settings" | "agent"> {
  /** Throws `conflict` while a run has the session. */
  checkIdle(session: SessionRecord): void;
}

export interface CompactNowOptions {
  /** What the summary is to mind above all. */
  readonly instructions?: string;
  readonly signal?: AbortSignal;
}

/** Has a session summarized by the model that would answer in it. Not while a run has it: a turn is not cut in two. */
export async function compactNow(
  deps: CompactNowDeps,
  session: SessionRecord,
  { instructions, signal = new AbortController().signal }: CompactNowOptions = {},
): Promise<CompactionOutcome> {
  const { models, settings, checkIdle } = deps;
  checkIdle(session);
  const model = models.turnModel(modelName(deps, session));
  return compactSession(deps, scopeOfSession(session), session, {
    summarize: models.summarizer(model, { signal, limits: settings, onUsage: () => undefined }),
    contextWindow: model.info.contextWindow ?? usualWindow,
    mode: settings.compaction.mode,
    maxHistoryShare: settings.compaction.maxHistoryShare,
    trigger: "manual",
    signal,
    ...(instructions === undefined ? {} : { instructions }),
    fence: () => {
      checkIdle(session);
      return true;
    },
  });
}

function modelName({ agent }: CompactNowDeps, session: SessionRecord): string {
  const { meta, agentId } = session;
  const model = meta.model ?? agent(session)?.model;
  if (model !== undefined) return model;
  const advice = "Add it to agents in the configuration, or set a model for the session";
  throw new SkeinError("not_found", { what: "Agent", name: agentId, advice });
}
