import Type from "typebox";

/** The fields that params of methods are made of, each with its limit. */

export const closed = { additionalProperties: false } as const;

const mebi = 1024 * 1024;

/** Whatever names a session for the token's user: key, display key, session id or label. */
export const reference = Type.String({ minLength: 1, maxLength: 4096 });
export const agentId = Type.String({ maxLength: 64, pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" });
export const sessionId = Type.String({ maxLength: 128, pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" });
/** Of an entry, a run, an approval, a message of the outbox, a token: other programs make some of them. */
export const id = Type.String({ minLength: 1, maxLength: 256 });
export const userId = Type.String({ minLength: 1, maxLength: 256 });
export const label = Type.String({ minLength: 1, maxLength: 512 });
/** `provider/model`. */
export const model = Type.String({ minLength: 1, maxLength: 256 });
export const idempotencyKey = Type.String({ minLength: 1, maxLength: 256 });
/** A line or two of a person's. */
export const sentence = Type.String({ minLength: 1, maxLength: 4000 });
/** A message, as long as anybody writes one. Empty where there are attachments. */
export const message = Type.String({ maxLength: 4 * mebi });
/** What a whole file may hold and still fit into a frame. */
export const fileContent = Type.String({ maxLength: 24 * mebi });

/** Milliseconds since 1970. */
export const time = Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 });
export const count = Type.Integer({ minimum: 0 });

/** Of one run. */
export const systemPrompt = Type.String({ minLength: 1, maxLength: 100_000 });
export const thinkingLevel = Type.Enum(["off", "minimal", "low", "medium", "high", "xhigh"]);
export const queueMode = Type.Enum(["steer", "followup", "interrupt"]);
export const kind = Type.Enum(["main", "group", "cron", "hook", "node", "other"]);

/** How many at the most: 1 to `most`. */
export function limit(most: number, byDefault: number) {
  return Type.Optional(Type.Integer({ minimum: 1, maximum: most, default: byDefault }));
}

/** A list of at most so many. */
export function few<T extends Type.TSchema>(item: T, most: number) {
  return Type.Array(item, { maxItems: most });
}

export function nullable<T extends Type.TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}

/** Exactly one of these fields has to be there. */
export function exactlyOne(...names: readonly string[]) {
  return { ...closed, oneOf: names.map((name) => ({ required: [name] })) };
}

/** One of these fields has to be there, or more. */
export function atLeastOne(...names: readonly string[]) {
  return { ...closed, anyOf: names.map((name) => ({ required: [name] })) };
}

/** Whose sessions. It comes from the token; only a token for all users may name one. */
export const user = { userId: Type.Optional(userId) };

/** The rows of every user. Needs the scope `admin` and a token for every user; no user or session can be named beside it. */
export const everyUser = { allUsers: Type.Optional(Type.Boolean()) };

/** For which agent `main`, display keys and labels are read. Left out: the default agent. */
export const reader = { agentId: Type.Optional(agentId), ...user };

/** One session, by any reference. */
export const oneSession = { key: reference, ...reader };

/** The same where its words are spoken of: `chat.*`, `agent`, `tools.invoke`. */
export const oneChat = { sessionKey: reference, ...reader };

/** Images, which is what a message can carry; base64. */
export const attachments = few(
  Type.Object(
    {
      name: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
      mimeType: Type.String({ maxLength: 100, pattern: "^image/[a-z0-9.+-]+$" }),
      data: Type.String({ minLength: 1, maxLength: 24 * mebi, pattern: "^[A-Za-z0-9+/]+={0,2}$" }),
    },
    closed,
  ),
  20,
);
