import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { spaceOf } from "../core/space.ts";
import type { UserListPayload, UserRow } from "../protocol/users.ts";
import type { RunStore } from "../runs/contract.ts";
import type { EveryUser } from "../store/work.ts";

/** `null` is the unnamed user and sorts first. */
type UserId = string | null;

interface UserSources extends Pick<EveryUser, "usersAfter" | "userFigures"> {
  readonly runs: Pick<RunStore, "countByUser"> | null;
  readonly tokens: {
    /** Returns users in byte order, like `usersAfter`. */
    countByUser(
      after: UserId | undefined,
      limit: number,
    ): Promise<readonly { readonly userId: UserId; readonly tokens: number }[]>;
  };
}

/** Returns a page of `users.list`: every user with a session or an access token. */
export async function listUsers(
  { usersAfter, userFigures, runs, tokens }: UserSources,
  { limit = 100, cursor }: { readonly limit?: number; readonly cursor?: string },
): Promise<UserListPayload> {
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  // One extra row indicates whether there is another page.
  const counts = await tokens.countByUser(after, limit + 1);
  const withTokens = new Map(counts.map((each) => [each.userId, each.tokens]));
  const found = new Set([...(await usersAfter(after, limit + 1)), ...withTokens.keys()]);
  const sorted = [...found].toSorted((a, b) => Buffer.compare(Buffer.from(a ?? ""), Buffer.from(b ?? "")));
  const page = sorted.slice(0, limit);
  const { figures, behind } = await userFigures(page);
  const figuresOf = new Map(figures.map((each) => [each.userId, each]));
  const runsOf = await runs?.countByUser(page);
  const users = page.map((userId): UserRow => {
    const { sessions = 0, totalTokens = 0, bytes = 0, lastActiveAt } = figuresOf.get(userId) ?? {};
    const { runs = 0, open = 0 } = runsOf?.get(userId ?? "") ?? {};
    const accessTokens = withTokens.get(userId) ?? 0;
    const { namespace, store, userId: name } = spaceOf(userId);
    return present({
      userId: name,
      namespace: namespace === null ? null : [...namespace],
      store,
      sessions,
      runs,
      openRuns: open,
      totalTokens,
      accessTokens,
      bytes,
      lastActiveAt,
    });
  });
  return present({
    count: users.length,
    users,
    nextCursor: sorted.length > limit ? encodeCursor(page.at(-1) ?? null) : null,
    indexing: behind === 0 ? null : { behind },
  });
}

/** Encodes the last user on a page. User IDs can contain any character, but cursors must be safe to type in a shell. */
function encodeCursor(userId: UserId): string {
  return `@${encodeURIComponent(userId ?? "")}`;
}

function decodeCursor(cursor: string): UserId {
  try {
    if (cursor.startsWith("@")) return decodeURIComponent(cursor.slice(1)) || null;
  } catch (cause) {
    throw unknownCursor(cursor, cause);
  }
  throw unknownCursor(cursor);
}

function unknownCursor(cursor: string, cause?: unknown): SkeinError {
  const problem = `The cursor "${cursor}" is invalid`;
  const advice = "Use nextCursor from the previous page, or omit it";
  return new SkeinError("invalid_arguments", { problem, advice }, { cause });
}
