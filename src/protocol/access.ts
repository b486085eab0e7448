import * as s from "../core/schema.ts";

/** What a question about access answers. */

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

/** `access`: for each action the decision, with every rule that was asked, the last of which decided. */
export const AccessSchema = s.closed({
  asker: s.closed({
    key: s.string(),
    sessionId: s.string(),
    agentId: s.string(),
    userId: s.optional(s.string()),
    sandboxed: s.boolean(),
  }),
  /** As the asker would write it. */
  target: s.string(),
  explanations: s.array(
    s.closed({ action: AccessActionSchema, decision: DecisionSchema, steps: s.array(StepSchema) }),
  ),
});
export type AccessPayload = s.Static<typeof AccessSchema>;
