import * as s from "../core/schema.ts";
import { thinkingLevels } from "../core/thinking-levels.ts";

/** Fields shared by the params of several methods, with their limits. */

const mebi = 1024 * 1024;

/** A reference to one of the token user's sessions: a key, display key, session ID or label. */
export const reference = s.string({ minLength: 1, maxLength: 4096 });
export const agentId = s.string({ maxLength: 64, pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" });
export const sessionId = s.string({ maxLength: 128, pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" });
/** The ID of an entry, run, approval, outbox message or token. Some of these IDs are chosen by other programs. */
export const id = s.string({ minLength: 1, maxLength: 256 });
export const userId = s.string({ minLength: 1, maxLength: 256 });
export const label = s.string({ minLength: 1, maxLength: 512 });
/** `provider/model`. */
export const model = s.string({ minLength: 1, maxLength: 256 });
export const idempotencyKey = s.string({ minLength: 1, maxLength: 256 });
/** Short text written by a person. */
export const sentence = s.string({ minLength: 1, maxLength: 4000 });
/** A message. It can be empty if there are attachments. */
export const message = s.string({ maxLength: 4 * mebi });
/** The content of a file that is small enough for one frame. */
export const fileContent = s.string({ maxLength: 24 * mebi });

/** Milliseconds since 1970. */
export const time = s.integer({ minimum: 0, maximum: 8_640_000_000_000_000 });
export const count = s.integer({ minimum: 0 });

/** The system prompt for one run. */
export const systemPrompt = s.string({ minLength: 1, maxLength: 100_000 });
export const thinkingLevel = s.choice(thinkingLevels);
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

/** Defaults to the token's user. Only a token for all users can set a different user. */
export const user = { userId: s.optional(userId) };

/**
 * Includes every user's rows. Requires the scope `admin` and a token for all users. Cannot be combined with a user or a
 * session.
 */
export const everyUser = { allUsers: s.optional(s.boolean()) };

/** The agent that `main`, display keys and labels are resolved for. Defaults to the default agent. */
export const reader = { agentId: s.optional(agentId), ...user };

/** One session, given as any kind of reference. */
export const oneSession = { key: reference, ...reader };

/** Like `oneSession`, but with the field name that `chat.*`, `agent` and `tools.invoke` use. */
export const oneChat = { sessionKey: reference, ...reader };

/**
 * A page from a branch. `leafId` selects the branch that ends at this entry, without moving the session's leaf.
 * `around` selects a page with this entry in the middle. The page is from the active branch if that branch contains the
 * entry, otherwise from the most recently written branch below the entry.
 */
export const branchPage = {
  before: s.optional(id),
  after: s.optional(id),
  around: s.optional(id),
  leafId: s.optional(id),
};

/** Base64-encoded images, the only attachments that messages support. */
export const attachments = few(
  s.closed({
    name: s.optional(s.string({ minLength: 1, maxLength: 256 })),
    mimeType: s.string({ maxLength: 100, pattern: "^image/[a-z0-9.+-]+$" }),
    data: s.string({ minLength: 1, maxLength: 24 * mebi, pattern: "^[A-Za-z0-9+/]+={0,2}$" }),
  }),
  20,
);
