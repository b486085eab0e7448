import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { GivenAttachment } from "../sessions/attachments.ts";
import { maxAttachments, withoutContents } from "../sessions/attachments.ts";
import { spawnChild } from "../sessions/spawn.ts";
import type { SpawnRequest } from "../sessions/spawn-request.ts";
import { unfit } from "../sessions/spawn-request.ts";
import type { SessionTool, ToolResult } from "./session-tool.ts";

const text = (description?: string, more: { maxLength?: number } = {}) =>
  s.optional(s.string({ ...present({ description }), ...more }));
const oneOf = (values: readonly string[], description?: string) =>
  s.optional(s.string({ enum: values, ...present({ description }) }));

const parameters = s.object({
  task: s.string({
    description: "The complete task. The session has no other information about this conversation.",
  }),
  label: text("A label that you can use to refer to the session.", { maxLength: 512 }),
  runtime: oneOf(["subagent", "acp"]),
  agentId: text(
    "The agent for the session. Defaults to your own agent or, for acp, to the default ACP agent. See agents_list.",
    {
      maxLength: 64,
    },
  ),
  resumeSessionId: text(
    'Resume an existing agent session by its ID (e.g. a Codex session UUID). Requires runtime="acp".',
  ),
  model: text(
    "The model, as provider/model; for acp, the agent's own name for it. Defaults to the agent's model.",
    {
      maxLength: 256,
    },
  ),
  thinking: text("off, minimal, low, medium, high or xhigh; for acp, the agent's own name for the level."),
  cwd: text("A folder inside your working directory. Defaults to your working directory."),
  runTimeoutSeconds: s.optional(
    s.number({
      minimum: 0,
      maximum: 31_536_000,
      description: "Timeout for the session's run, in seconds. 0 means no limit.",
    }),
  ),
  thread: s.optional(
    s.boolean({ description: "Bind the session to a new thread on this session's channel." }),
  ),
  mode: oneOf(["run", "session"]),
  cleanup: oneOf(["keep", "delete"]),
  sandbox: oneOf(["inherit", "require"]),
  streamTo: oneOf(["parent"], 'Relay the session\'s progress to you. Requires runtime="acp".'),
  tools: s.optional(
    s.array(s.string({ maxLength: 128 }), {
      maxItems: 200,
      description: "Restrict the session to these tools, by name, group (group:sessions) or glob.",
    }),
  ),
  background: s.optional(
    s.boolean({
      description: "If false, wait until the session has finished and return its result. Defaults to true.",
    }),
  ),
  context: oneOf(["isolated", "fork"], "With fork, the session starts with a copy of this conversation."),
  attachments: s.optional(
    s.array(
      s.object({
        name: s.string({ description: "A plain file name." }),
        content: s.string({ description: "The file's content, in the given encoding.", keep: true }),
        encoding: oneOf(["utf8", "base64"]),
        mimeType: text(),
      }),
      {
        maxItems: maxAttachments,
        description: "Files for the session. They are copied to a folder, and the session is given the path.",
      },
    ),
  ),
  attachAs: s.optional(
    s.object({
      mountPath: text("A folder for the attachments, relative to the session's working directory."),
    }),
  ),
});

const unsupported = ["target", "transport", "channel", "to", "threadId", "thread_id", "replyTo", "reply_to"];

export const sessionsSpawn: SessionTool = {
  name: "sessions_spawn",
  label: "Sessions",
  description:
    'Spawn an isolated session (runtime="subagent" or runtime="acp"). mode="run" is one-shot and mode="session" is persistent/thread-bound. Subagents inherit the parent workspace directory automatically.',
  parameters: parameters as unknown as SessionTool["parameters"],
  output: outputs.sessionsSpawn,
  aliases: { prompt: "task", timeoutSeconds: "runTimeoutSeconds", timeout: "runTimeoutSeconds" },
  exclusiveAliases: ["prompt"],
  refusedNames: Object.fromEntries(
    unsupported.map((name) => [
      name,
      `sessions_spawn does not support "${name}". Use "sessions_send" for channel delivery.`,
    ]),
  ),
  persisted: withoutContents,
  execute: async (args, call, app) => {
    const request = requestOf(args as SpawnArguments);
    const result: ToolResult = "status" in request ? { ...request } : await spawnChild(app, call, request);
    return { result };
  },
};

/** The arguments after they have been checked against the schema. */
type SpawnArguments = Partial<Omit<SpawnRequest, "attachments" | "mountPath">> & {
  readonly attachments?: readonly GivenAttachment[];
  readonly attachAs?: { readonly mountPath?: string };
};

/** Returns the request with its defaults. */
function requestOf(args: SpawnArguments): SpawnRequest | ReturnType<typeof unfit> {
  const { task, attachments = [], attachAs, thread = false, ...rest } = args;
  if (task === undefined) return unfit("task is required");
  if (attachAs !== undefined && attachments.length === 0) {
    return unfit("attachAs sets where attachments are written, but there are no attachments.");
  }
  return {
    runtime: "subagent",
    mode: thread ? "session" : "run",
    cleanup: "keep",
    sandbox: "inherit",
    background: true,
    context: "isolated",
    ...rest,
    task,
    thread,
    attachments,
    ...present({ mountPath: attachAs?.mountPath }),
  };
}
