import type { FilesStore } from "../../compose.ts";
import { readBlobs, readLog, readSessionFile } from "../../compose.ts";
import type { Config } from "../../config/sections/all.ts";
import type { SessionContext } from "../../core/context.ts";
import { parseKey } from "../../core/keys.ts";
import { present } from "../../core/present.ts";
import type { XrayOptions } from "../../sessions/xray.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { noSuchSession } from "../../store/refusals.ts";
import { historyLimitFor } from "../../transcript/history-limit.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { pathFrom } from "../output/terminal.ts";
import { findSession, isFileName } from "./find-session.ts";
import { loadSettings } from "./load-settings.ts";
import { withFolder } from "./with-folder.ts";

/** A context, and what the configuration says of requests that are made of it. */
export interface Looked {
  readonly context: SessionContext;
  readonly config: Config;
  readonly known: XrayOptions;
  /** The model of the session's agent, where one is configured. */
  readonly agentModel: string | null;
}

/** Blobs and an agent belong to a session in a folder; of a lone file they are not known. */
export async function withContext<T>(
  terminal: Terminal,
  name: string,
  options: GlobalOptions,
  use: (looked: Looked) => Promise<T>,
): Promise<T> {
  if (isFileName(name)) {
    const context = (await readSessionFile(pathFrom(terminal, name))).context();
    const { config } = await loadSettings(terminal, options);
    return use({ context, config, known: { pruning: pruningBy(config, terminal.now()) }, agentModel: null });
  }
  return withFolder(terminal, options, async (folder) => {
    const { store, scope, config } = folder;
    const record = await findSession(folder, name);
    const found = await store.sessions.context(scope, record.sessionId);
    const context = found ?? noSuchSession(record.sessionId);
    const agent = Object.hasOwn(config.agents, record.agentId) ? config.agents[record.agentId] : undefined;
    const known = {
      images: { blob: readBlobs(store, record) },
      pruning: pruningBy(config, terminal.now()),
      ...present({ system: context.system ?? agent?.system }),
      ...present({ thinkingLevel: await levelOf(store, record, context, agent?.thinking ?? null) }),
      ...present({ historyLimit: historyLimitFor(parseKey(record.key), config.channels) }),
    };
    return use({ context, config, known, agentModel: agent?.model ?? null });
  });
}

/** The level that was set for the session, else what its entries say, else the agent's; `null`: the context's. */
async function levelOf(
  store: FilesStore,
  record: SessionRecord,
  { thinkingLevel }: SessionContext,
  agents: string | null,
): Promise<string | null> {
  const { meta } = record;
  if (meta.thinkingLevel !== undefined) return meta.thinkingLevel;
  if (agents === null || thinkingLevel !== "off") return null;
  // A context says off whether somebody chose it or nobody said anything.
  const isChosen = (await readLog(store, record)).path().some(({ type }) => type === "thinking_level_change");
  return isChosen ? null : agents;
}

function pruningBy({ contextPruning }: Config, now: number): NonNullable<XrayOptions["pruning"]> {
  const { mode, ttl, tools } = contextPruning;
  const allow = tools.allow.length === 0 ? undefined : tools.allow;
  return { mode, ttlMs: ttl, lastCallAt: null, now, ...present({ allow }), deny: tools.deny };
}
