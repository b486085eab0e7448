import type { Static } from "typebox";
import Type from "typebox";

/** What a question about access answers. */

const strict = { additionalProperties: false };

export const AccessActionSchema = Type.Enum(["list", "history", "send", "status"]);

const DecisionSchema = Type.Union([
  Type.Object({ allowed: Type.Literal(true) }, strict),
  Type.Object(
    {
      allowed: Type.Literal(false),
      status: Type.Enum(["forbidden", "error"]),
      code: Type.String(),
      error: Type.String(),
      retryable: Type.Boolean(),
    },
    strict,
  ),
]);

const StepSchema = Type.Object(
  { rule: Type.String(), outcome: Type.Enum(["allow", "refuse", "pass"]), reason: Type.String() },
  strict,
);

/** `access`: for each action the decision, with every rule that was asked, the last of which decided. */
export const AccessSchema = Type.Object(
  {
    asker: Type.Object(
      {
        key: Type.String(),
        sessionId: Type.String(),
        agentId: Type.String(),
        userId: Type.Optional(Type.String()),
        sandboxed: Type.Boolean(),
      },
      strict,
    ),
    /** As the asker would write it. */
    target: Type.String(),
    explanations: Type.Array(
      Type.Object(
        { action: AccessActionSchema, decision: DecisionSchema, steps: Type.Array(StepSchema) },
        strict,
      ),
    ),
  },
  strict,
);
export type AccessPayload = Static<typeof AccessSchema>;
