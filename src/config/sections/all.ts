import type { Group, Read } from "../settings/setting.ts";
import { agents } from "./agents.ts";
import { channels } from "./channels.ts";
import { compaction } from "./compaction.ts";
import { contextPruning } from "./context-pruning.ts";
import { modelsSection } from "./models.ts";
import { session } from "./session.ts";
import { store } from "./store.ts";
import { durability, lock } from "./writing.ts";

/** The whole configuration, each section from its own file. */
export const sections = {
  node: "group",
  about: "Configuration of Skein.",
  fields: {
    store,
    durability,
    lock,
    agents,
    models: modelsSection,
    session,
    compaction,
    contextPruning,
    channels,
  },
} satisfies Group;

/** A configuration as the program has it: complete, paths absolute, lengths of time in milliseconds. */
export type Config = Read<typeof sections>;
