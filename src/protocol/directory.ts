import * as s from "../core/schema.ts";
import { AccessActionSchema } from "./access.ts";
import { count } from "./fields.ts";

/** Which agents and models there are. */

const optionalText = s.optional(s.string());
const visibility = s.choice(["self", "tree", "agent", "all"]);

/** `agents.list`: those that are defined, and those that only have sessions. */
export const AgentListSchema = s.closed({
  count,
  agents: s.array(
    s.closed({
      id: s.string(),
      /** `false`: it has sessions, and nobody defines it any more. */
      configured: s.boolean(),
      /** Who answers where nobody is named. */
      isDefault: s.boolean(),
      model: optionalText,
      thinking: optionalText,
      sandboxed: s.boolean(),
      /** Names of what it is offered. */
      tools: s.array(s.string()),
      visibility: s.closed({ list: visibility, history: visibility, send: visibility, status: visibility }),
      /** Other agents whose sessions its own may reach, and for what; their own trees aside. */
      reach: s.array(s.closed({ agentId: s.string(), actions: s.array(AccessActionSchema) })),
      /** Agents that it may spawn; `*`: any. */
      maySpawn: s.array(s.string()),
    }),
  ),
  /** Agents of others that may be spawned, by name. */
  acp: s.array(s.string()),
});
export type AgentListPayload = s.Static<typeof AgentListSchema>;

/** `models.list`: those that the configuration or an agent names. What is not known of one is absent. */
const ModelPriceSchema = s.closed({
  input: s.number(),
  output: s.number(),
  cacheRead: s.optional(s.number()),
  cacheWrite: s.optional(s.number()),
  /** The address of the price list, or `configuration`. */
  source: s.string(),
  /** As 2026-11-15; absent for a configured price. */
  date: optionalText,
});

export const ModelListSchema = s.closed({
  count,
  models: s.array(
    s.closed({
      /** `provider/model`. */
      model: s.string(),
      provider: s.string(),
      api: optionalText,
      contextWindow: s.optional(count),
      maxOutput: s.optional(count),
      vision: s.optional(s.boolean()),
      thinking: s.optional(s.choice(["none", "budget", "levels"])),
      /** Dollars per million tokens, from where, and as of when. */
      price: s.union([ModelPriceSchema, s.literal("unknown")]),
      /** Agents that have it as theirs. */
      agents: s.array(s.string()),
    }),
  ),
});
export type ModelListPayload = s.Static<typeof ModelListSchema>;
