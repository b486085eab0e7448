import type { Read, Writable } from "../settings/setting.ts";
import { group } from "../settings/setting.ts";
import { acp } from "./acp.ts";
import { agents, defaults } from "./agents.ts";
import { channels } from "./channels.ts";
import { compaction, contextPruning, search } from "./context.ts";
import { gateway } from "./gateway.ts";
import { mcpServers } from "./mcp-servers.ts";
import { modelsSection } from "./models.ts";
import { logging, redaction, telemetry } from "./observability.ts";
import { approvals, budget, lanes, queue, retries, yielding } from "./runs.ts";
import { schedules } from "./schedules.ts";
import { session } from "./session.ts";
import { blobs, durability, lock, postgres, store } from "./store.ts";
import { tools } from "./tools.ts";

export const sections = group("Skein configuration.", {
  store,
  durability,
  lock,
  postgres,
  blobs,
  gateway,
  agents,
  defaults,
  models: modelsSection,
  mcpServers,
  acp,
  tools,
  session,
  queue,
  lanes,
  budget,
  approvals,
  retries,
  yield: yielding,
  compaction,
  contextPruning,
  search,
  channels,
  schedules,
  redaction,
  telemetry,
  logging,
});

/** The configuration that the program uses: complete, with absolute paths and durations in milliseconds. */
export type Config = Read<typeof sections>;

/**
 * A configuration passed to `createSkein({ config })` in code. It has the same settings as a `skein.yaml` and is
 * validated in the same way.
 */
export type ConfigInput = Writable<typeof sections>;
