/**
 * The store and namespace for the sessions in a call. Internally, a space is part of the user ID. Everything that
 * separates users therefore also separates spaces: lists, search, sends, runs, idempotency keys and budgets.
 */
export interface Space {
  /** The name of a store, or `null` for Skein's own store. */
  readonly store: string | null;
  /** The folders that contain the sessions, or `null` for the user's default. */
  readonly namespace: readonly string[] | null;
}

/** A user in a space. */
export interface SpaceUser extends Space {
  /** `null` for the unnamed user. */
  readonly userId: string | null;
}

/** User IDs from outside never start with this character. */
const marker = "\u0001";

/** Encodes a user and a space as one user ID. In the default space, the result is the user ID itself. */
export function userInSpace({ userId, store, namespace }: SpaceUser): string | null {
  if (store === null && namespace === null) return userId;
  return marker + JSON.stringify([store, namespace, userId]);
}

/** Decodes a user ID from `userInSpace`. */
export function spaceOf(userId: string | null): SpaceUser {
  return (userId?.startsWith(marker) ? decode(userId) : null) ?? { userId, store: null, namespace: null };
}

/** Whether a string looks like an encoded user, which is not allowed as a user ID. */
export function isReservedUserId(userId: string): boolean {
  return userId.startsWith(marker);
}

function decode(text: string): SpaceUser | null {
  try {
    const parts: unknown = JSON.parse(text.slice(marker.length));
    if (!Array.isArray(parts) || parts.length !== 3) return null;
    const [store, namespace, userId] = parts as [string | null, string[] | null, string | null];
    const found = { store, namespace, userId };
    return userInSpace(found) === text ? found : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
