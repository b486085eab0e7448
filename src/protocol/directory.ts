import * as s from "../core/schema.ts";
import { count, idempotencyKey, reader, reference, user } from "./fields.ts";
import { method } from "./method.ts";

/** The result of an access check. */

export const AccessActionSchema = s.choice(["list", "history", "send", "status"]);

const DecisionSchema = s.union([
  s.closed({ allowed: s.literal(true) }),
  s.closed({
    allowed: s.literal(false),
    status: s.choice(["forbidden", "error"]),
    code: s.string(),
    error: s.string(),
    retryable: s.boolean(),
  }),
]);

const StepSchema = s.closed({
  rule: s.string(),
  outcome: s.choice(["allow", "refuse", "pass"]),
  reason: s.string(),
});

/** `access`: the decision for each action, with every rule that was evaluated. The last rule made the decision. */
export const AccessSchema = s.closed({
  asker: s.closed({
    key: s.string(),
    sessionId: s.string(),
    agentId: s.string(),
    userId: s.optional(s.string()),
    sandboxed: s.boolean(),
  }),
  /** The session reference that the caller would use. */
  target: s.string(),
  explanations: s.array(
    s.closed({ action: AccessActionSchema, decision: DecisionSchema, steps: s.array(StepSchema) }),
  ),
});
export type AccessPayload = s.Static<typeof AccessSchema>;

/** Lists of agents and models. */

const optionalText = s.optional(s.string());
const visibility = s.choice(["self", "tree", "agent", "all"]);

/** `agents.list`: agents that are defined, and agents that are not defined but have sessions. */
export const AgentListSchema = s.closed({
  count,
  agents: s.array(
    s.closed({
      id: s.string(),
      /** `false` if the agent has sessions but is no longer defined. */
      configured: s.boolean(),
      /** `true` if this agent answers requests that do not name one. */
      isDefault: s.boolean(),
      model: optionalText,
      thinking: optionalText,
      sandboxed: s.boolean(),
      /** The names of the agent's tools. */
      tools: s.array(s.string()),
      visibility: s.closed({ list: visibility, history: visibility, send: visibility, status: visibility }),
      /**
       * Other agents whose sessions this agent can access, with the allowed actions. Its own session tree is not
       * listed.
       */
      reach: s.array(s.closed({ agentId: s.string(), actions: s.array(AccessActionSchema) })),
      /** Agents that this agent is allowed to spawn. `*` means any agent. */
      maySpawn: s.array(s.string()),
    }),
  ),
  /** The names of the ACP agents that may be spawned. */
  acp: s.array(s.string()),
});
export type AgentListPayload = s.Static<typeof AgentListSchema>;

/** `models.list`: models that the configuration or an agent uses. Properties with unknown values are absent. */
const ModelPriceSchema = s.closed({
  input: s.number(),
  output: s.number(),
  cacheRead: s.optional(s.number()),
  cacheWrite: s.optional(s.number()),
  /** The URL of the price list, or `configuration`. */
  source: s.string(),
  /** For example, 2026-11-15. Absent for a configured price. */
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
      /** In dollars per million tokens, with the source and the date. */
      price: s.union([ModelPriceSchema, s.literal("unknown")]),
      /** The agents that use this model. */
      agents: s.array(s.string()),
    }),
  ),
});
export type ModelListPayload = s.Static<typeof ModelListSchema>;

export const agentsList = method({
  scope: "read",
  about: "Lists the agents and what each of them can access.",
  params: s.closed(user),
  result: AgentListSchema,
  isIdempotent: true,
});

export const modelsList = method({
  scope: "read",
  about: "Lists the available models.",
  params: s.closed({}),
  result: ModelListSchema,
  isIdempotent: true,
});

/** Any session can be given as the caller because the result explains rules and reveals no session content. */
export const accessExplain = method({
  scope: "read",
  about: "Explains, rule by rule, whether a session can access another session.",
  params: s.closed({
    asker: reference,
    target: reference,
    action: s.optional(AccessActionSchema),
    ...reader,
  }),
  result: AccessSchema,
  isIdempotent: true,
});

/** `access.matrix`: rows are callers and columns are targets, both in the order of `sessions`. */
export const AccessMatrixSchema = s.closed({
  sessions: s.array(
    s.closed({ key: s.string(), sessionId: s.string(), agentId: s.string(), label: optionalText }),
  ),
  /** The allowed actions for each caller and target. */
  allowed: s.array(s.array(s.array(AccessActionSchema))),
  /** The deciding rule for each caller, target and action. */
  rules: s.array(
    s.array(
      s.closed({ list: optionalText, history: optionalText, send: optionalText, status: optionalText }),
    ),
  ),
});
export type AccessMatrixPayload = s.Static<typeof AccessMatrixSchema>;

export const accessMatrix = method({
  scope: "read",
  about: "Shows which sessions can list, read, message and inspect which others, and the rules that apply.",
  params: s.closed({
    /** Defaults to the 24 most recently active sessions. Sessions that do not exist are omitted. */
    keys: s.optional(s.array(reference, { minItems: 1, maxItems: 64 })),
    /** Defaults to all four. */
    action: s.optional(AccessActionSchema),
    ...reader,
  }),
  result: AccessMatrixSchema,
  isIdempotent: true,
});

/**
 * Tools that wait for other sessions. When a gateway stops, it aborts these calls. Calls to an agent's own tools are
 * not aborted, because those tools do the work themselves.
 */
const waitingTools: readonly unknown[] = ["sessions_send", "sessions_spawn"];

/**
 * `rootId` is the root of everything that the call started, for use with `runs.list`. A call that the tool rejects is a
 * result, not an error. If no session is given, the call applies to the agent's main session, if it exists. Session
 * tools also accept a key that no session has yet. A tool that starts a run creates that session.
 */
export const toolsInvoke = method({
  scope: "tools",
  about: "Calls a tool exactly as an agent in the given session would.",
  isLong: ({ name }) => waitingTools.includes(name),
  params: s.closed({
    sessionKey: s.optional(reference),
    ...reader,
    name: s.string({ minLength: 1, maxLength: 128 }),
    /** The tool validates the arguments against its own schema. */
    arguments: s.optional(s.record(s.unknown(), { maxProperties: 256 })),
    idempotencyKey: s.optional(idempotencyKey),
  }),
  result: s.closed({
    name: s.string(),
    isError: s.boolean(),
    result: s.unknown(),
    rootId: s.optional(s.string()),
  }),
});
