import * as s from "../core/schema.ts";
import { limit, userId } from "./fields.ts";
import { method } from "./method.ts";
import { erasePending } from "./session-changes.ts";
import { IndexingSchema } from "./session-list.ts";

/** `users.list`, `users ls`: sorted by ID. */
export const UserListSchema = s.closed({
  count: s.integer(),
  users: s.array(
    s.closed({
      /** Absent for the unnamed user. */
      userId: s.optional(s.string()),
      /** The names of the nested folders that contain the sessions, if a program has set a namespace. */
      namespace: s.optional(s.array(s.string())),
      /** The name of the store in `createSkein({ stores })`. Absent for the folder's own store. */
      store: s.optional(s.string()),
      /** Sessions in the trash are not counted. */
      sessions: s.integer(),
      runs: s.integer(),
      openRuns: s.integer(),
      /** Model tokens used in the user's sessions. */
      totalTokens: s.integer(),
      /** The number of valid gateway tokens for this user alone. */
      accessTokens: s.integer(),
      /** The size of the session logs. */
      bytes: s.integer(),
      /** The time of the last message. Absent if there are no messages. */
      lastActiveAt: s.optional(s.integer()),
    }),
  ),
  nextCursor: s.optional(s.string()),
  indexing: s.optional(IndexingSchema),
});
export type UserListPayload = s.Static<typeof UserListSchema>;
export type UserRow = UserListPayload["users"][number];

/** `users.remove`, `users rm`. */
export const UserRemovedSchema = s.closed({
  userId: s.string(),
  sessions: s.integer(),
  /** `false` if the user had neither sessions nor access tokens. Absent otherwise. */
  found: s.optional(s.literal(false)),
  erasePending,
});

export const usersList = method({
  scope: "admin",
  about: "Lists users by ID, with their sessions, runs, tokens, disk usage and last activity.",
  params: s.closed({
    limit: limit(500, 100),
    cursor: s.optional(s.string({ minLength: 1, maxLength: 4096 })),
  }),
  result: UserListSchema,
  needsAll: true,
  isIdempotent: true,
});

/** Lets `users rm` work while a gateway is running. */
export const usersRemove = method({
  scope: "admin",
  about: "Permanently deletes a user's sessions and all other data.",
  params: s.closed({ userId }),
  result: UserRemovedSchema,
  needsAll: true,
  isIdempotent: true,
  isDestructive: true,
});
