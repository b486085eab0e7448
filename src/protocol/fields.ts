import * as s from "../core/schema.ts";

/** Fields that method params share, each with its limit. */

const mebi = 1024 * 1024;

/** A reference to a session of the token's user: key, display key, session ID or label. */
export const reference = s.string({ minLength: 1, maxLength: 4096 });
export const agentId = s.string({ maxLength: 64, pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" });
export const sessionId = s.string({ maxLength: 128, pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" });
/** The ID of an entry, run, approval, outbox message or token. Other programs choose some of them. */
export const id = s.string({ minLength: 1, maxLength: 256 });
export const userId = s.string({ minLength: 1, maxLength: 256 });
export const label = s.string({ minLength: 1, maxLength: 512 });
/** `provider/model`. */
export const model = s.string({ minLength: 1, maxLength: 256 });
export const idempotencyKey = s.string({ minLength: 1, maxLength: 256 });
/** A short text written by a person. */
export const sentence = s.string({ minLength: 1, maxLength: 4000 });
/** A message. It may be empty if there are attachments. */
export const message = s.string({ maxLength: 4 * mebi });
/** The content of a file, small enough for one frame. */
export const fileContent = s.string({ maxLength: 24 * mebi });

/** Milliseconds since 1970. */
export const time = s.integer({ minimum: 0, maximum: 8_640_000_000_000_000 });
export const count = s.integer({ minimum: 0 });

/** The system prompt of one run. */
export const systemPrompt = s.string({ minLength: 1, maxLength: 100_000 });
export const thinkingLevel = s.choice(["off", "minimal", "low", "medium", "high", "xhigh"]);
export const queueMode = s.choice(["steer", "followup", "interrupt"]);
export const kind = s.choice(["main", "group", "cron", "hook", "node", "other"]);

/** A page size from 1 to `most`. */
export function limit(most: number, byDefault: number) {
  return s.optional(s.integer({ minimum: 1, maximum: most, default: byDefault }));
}

/** A list of at most `most` items. */
export function few<T>(item: s.Schema<T>, most: number) {
  return s.array(item, { maxItems: most });
}

/** Requires exactly one of these fields. */
export function exactlyOne(...names: readonly string[]) {
  return { oneOf: names.map((name) => ({ required: [name] })) };
}

/** Requires at least one of these fields. */
export function atLeastOne(...names: readonly string[]) {
  return { anyOf: names.map((name) => ({ required: [name] })) };
}

/** The user, which normally comes from the token; only a token for all users may name one. */
export const user = { userId: s.optional(userId) };

/**
 * The rows of every user. Needs the scope `admin` and a token for every user; no user or session can be named together
 * with it.
 */
export const everyUser = { allUsers: s.optional(s.boolean()) };

/** The agent for which `main`, display keys and labels are resolved; by default the default agent. */
export const reader = { agentId: s.optional(agentId), ...user };

/** One session, by any reference. */
export const oneSession = { key: reference, ...reader };

/** The same under the name that `chat.*`, `agent` and `tools.invoke` use. */
export const oneChat = { sessionKey: reference, ...reader };

/**
 * A page of a branch. `leafId`: the branch that ends in this entry; the session's leaf is not moved. `around`: a page with
 * this entry in its middle, on the active branch if it is there, otherwise on the branch that was last written below it.
 */
export const branchPage = {
  before: s.optional(id),
  after: s.optional(id),
  around: s.optional(id),
  leafId: s.optional(id),
};

/** Images in base64; messages carry nothing else. */
export const attachments = few(
  s.closed({
    name: s.optional(s.string({ minLength: 1, maxLength: 256 })),
    mimeType: s.string({ maxLength: 100, pattern: "^image/[a-z0-9.+-]+$" }),
    data: s.string({ minLength: 1, maxLength: 24 * mebi, pattern: "^[A-Za-z0-9+/]+={0,2}$" }),
  }),
  20,
);
