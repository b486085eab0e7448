import * as s from "../../core/schema.ts";
import { id, label, limit, reader, reference, time, userId } from "../fields.ts";
import { UserRemovedSchema } from "../session-changes.ts";
import { ScopeSchema, TokenCreatedSchema, TokenListSchema, TokenRowSchema } from "../tokens.ts";
import { ConfigurationSchema, MaintenanceReportSchema, ReloadSchema, UserListSchema } from "../upkeep.ts";
import { method } from "./method.ts";

/** Methods about the gateway itself: only with a token for all users. */

/** A token mints only a part of itself. For all users needs `admin`; a user may be called `*`, hence a field of its own. */
export const tokensCreate = method({
  scope: "admin",
  about: "Mints a token, and shows it once.",
  params: s.closed({
    label: s.optional(label),
    scopes: s.array(ScopeSchema, { minItems: 1, maxItems: 4, uniqueItems: true }),
    /** Left out, and not for all: the unnamed user alone. */
    userId: s.optional(userId),
    allUsers: s.optional(s.boolean({ default: false })),
    /** Left out: until it is revoked. */
    expiresAt: s.optional(time),
  }),
  result: TokenCreatedSchema,
  needsAll: true,
});

export const tokensList = method({
  scope: "admin",
  about: "Lists tokens, without what they are.",
  params: s.closed({}),
  result: TokenListSchema,
  needsAll: true,
  isIdempotent: true,
});

export const tokensRevoke = method({
  scope: "admin",
  about: "Ends a token, and the sockets that were opened with it.",
  params: s.closed({ tokenId: id }),
  result: TokenRowSchema,
  needsAll: true,
  isIdempotent: true,
  isDestructive: true,
});

/** `dryRun`: what would be done, whatever the mode. `explain`: what each rule means for one session; nothing is done then. */
export const maintenanceRun = method({
  scope: "admin",
  about: "Looks after old sessions now, as the configuration says.",
  params: s.closed({
    dryRun: s.optional(s.boolean({ default: false })),
    explain: s.optional(reference),
    ...reader,
  }),
  result: MaintenanceReportSchema,
  needsAll: true,
  isIdempotent: true,
  isDestructive: true,
});

export const configGet = method({
  scope: "admin",
  about: "The configuration that holds, with where each value comes from and without secrets.",
  params: s.closed({}),
  result: ConfigurationSchema,
  needsAll: true,
  isIdempotent: true,
});

/** The only way, beside a restart, to let a running gateway start a command that its configuration did not have. */
export const configReload = method({
  scope: "admin",
  about: "Reads the configuration again and applies all of it, new commands included.",
  params: s.closed({}),
  result: ReloadSchema,
  needsAll: true,
  isIdempotent: true,
});

export const usersList = method({
  scope: "admin",
  about: "Lists users by ID, with what they have and when they were last active.",
  params: s.closed({
    limit: limit(500, 100),
    cursor: s.optional(s.string({ minLength: 1, maxLength: 4096 })),
  }),
  result: UserListSchema,
  needsAll: true,
  isIdempotent: true,
});

/** Not in the table of methods that this follows: `users rm` works on a running gateway too. */
export const usersRemove = method({
  scope: "admin",
  about: "Takes away everything of a user, for good.",
  params: s.closed({ userId }),
  result: UserRemovedSchema,
  needsAll: true,
  isIdempotent: true,
  isDestructive: true,
});
