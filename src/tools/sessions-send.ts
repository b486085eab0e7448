import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { outputs } from "../protocol/tool-results.ts";
import { deliveryRunId } from "../sessions/delivery.ts";
import { sendToSession } from "../sessions/send.ts";
import type { SendRequest } from "../sessions/send-target.ts";
import type { SessionTool } from "./session-tool.ts";

const schema = s.closed({
  sessionKey: s.optional(
    s.string({
      description: "The target session, as shown by sessions_list. Cannot be combined with label.",
    }),
  ),
  label: s.optional(
    s.string({
      minLength: 1,
      maxLength: 512,
      description: "The label of one of your agent's sessions, or of one of agentId's sessions.",
    }),
  ),
  agentId: s.optional(
    s.string({
      minLength: 1,
      maxLength: 64,
      description:
        "The agent whose session has the label. Without a label, the target is this agent's main session.",
    }),
  ),
  message: s.string({ description: "The message to send." }),
  timeoutSeconds: s.optional(
    s.number({
      minimum: 0,
      description:
        "Seconds to wait for the reply. If 0 or omitted, the reply arrives later as a separate message.",
    }),
  ),
  role: s.optional(
    s.choice(["user", "assistant"], {
      description:
        "With assistant, the message is added as a note in the session's own voice and is not answered. Defaults to user.",
    }),
  ),
});

export const sessionsSend: SessionTool = {
  name: "sessions_send",
  label: "Session Send",
  description: "Send a message into another session. Use sessionKey or label to identify the target.",
  parameters: { ...schema },
  output: outputs.sessionsSend,
  refused: ({ userId, callId }) => ({ runId: deliveryRunId(userId, callId) }),
  execute: async (args, call, app) => ({ result: await sendToSession(app, call, requestOf(args)) }),
};

/** Builds the request from arguments that have been checked against the schema. */
function requestOf(args: Readonly<Record<string, unknown>>): SendRequest {
  return { message: "", ...present(args) };
}
