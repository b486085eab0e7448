import type { Static } from "typebox";
import Type from "typebox";
import { AccessActionSchema } from "./access.ts";
import { closed, count } from "./fields.ts";

/** Which agents and models there are. */

const optionalText = Type.Optional(Type.String());
const visibility = Type.Enum(["self", "tree", "agent", "all"]);

/** `agents.list`: those that are defined, and those that only have sessions. */
export const AgentListSchema = Type.Object(
  {
    count,
    agents: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          /** `false`: it has sessions, and nobody defines it any more. */
          configured: Type.Boolean(),
          /** Who answers where nobody is named. */
          isDefault: Type.Boolean(),
          model: optionalText,
          thinking: optionalText,
          sandboxed: Type.Boolean(),
          /** Names of what it is offered. */
          tools: Type.Array(Type.String()),
          visibility: Type.Object(
            { list: visibility, history: visibility, send: visibility, status: visibility },
            closed,
          ),
          /** Other agents whose sessions its own may reach, and for what; their own trees aside. */
          reach: Type.Array(
            Type.Object({ agentId: Type.String(), actions: Type.Array(AccessActionSchema) }, closed),
          ),
          /** Agents that it may spawn; `*`: any. */
          maySpawn: Type.Array(Type.String()),
        },
        closed,
      ),
    ),
    /** Agents of others that may be spawned, by name. */
    acp: Type.Array(Type.String()),
  },
  closed,
);
export type AgentListPayload = Static<typeof AgentListSchema>;

/** `models.list`: those that the configuration or an agent names. What is not known of one is absent. */
const ModelPriceSchema = Type.Object(
  {
    input: Type.Number(),
    output: Type.Number(),
    cacheRead: Type.Optional(Type.Number()),
    cacheWrite: Type.Optional(Type.Number()),
    /** The address of the price list, or `configuration`. */
    source: Type.String(),
    /** As 2026-11-15; absent for a configured price. */
    date: optionalText,
  },
  closed,
);

export const ModelListSchema = Type.Object(
  {
    count,
    models: Type.Array(
      Type.Object(
        {
          /** `provider/model`. */
          model: Type.String(),
          provider: Type.String(),
          api: optionalText,
          contextWindow: Type.Optional(count),
          maxOutput: Type.Optional(count),
          vision: Type.Optional(Type.Boolean()),
          thinking: Type.Optional(Type.Enum(["none", "budget", "levels"])),
          /** Dollars per million tokens, from where, and as of when. */
          price: Type.Union([ModelPriceSchema, Type.Literal("unknown")]),
          /** Agents that have it as theirs. */
          agents: Type.Array(Type.String()),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type ModelListPayload = Static<typeof ModelListSchema>;
