/**
 * A space: the sessions of a store that a call names, of a namespace, or of both. Inside the product a space is part of
 * the user id, so whatever keeps users apart keeps spaces apart: lists, search, sends, runs, idempotency keys and budgets.
 */
export interface Space {
  /** The name of a store; `null`: the Skein's own. */
  readonly store: string | null;
  /** The folders of the sessions; `null`: those of the user. */
  readonly namespace: readonly string[] | null;
}

/** A user in a space. */
export interface SpaceUser extends Space {
  /** `null`: the unnamed user. */
  readonly userId: string | null;
}

/** No user id from outside begins with it. */
const marker = "\u0001";

/** Encodes a user and a space as one user id. In the default space that is the user id itself. */
export function userInSpace({ userId, store, namespace }: SpaceUser): string | null {
  if (store === null && namespace === null) return userId;
  return marker + JSON.stringify([store, namespace, userId]);
}

/** Decodes a user id of `userInSpace`. */
export function spaceOf(userId: string | null): SpaceUser {
  return (userId?.startsWith(marker) ? decode(userId) : null) ?? { userId, store: null, namespace: null };
}

/** Whether a text looks like the id of a user in a space, which no user may be called. */
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
