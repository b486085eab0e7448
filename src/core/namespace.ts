import { SkeinError } from "./errors.ts";
import { userSegment } from "./path-segment.ts";
import { spaceOf } from "./space.ts";

const usersFolder = "users";
const maxSegments = 8;
/** Names that the store itself uses in a folder, including its databases and their auxiliary files. */
const storesOwn =
  /^(?:agents|trash|users|user\.json|sessions\.json|gateway\.json|token|(?:work|index|locks)\.db.*)$/;

/** Returns the folders for a user: `users` and the ID. The unnamed user's sessions are in the root itself. */
export function defaultNamespace({ userId }: { readonly userId?: string | null }): readonly string[] {
  const { namespace, userId: named } = spaceOf(userId ?? null);
  return namespace ?? (named === null ? [] : [usersFolder, named]);
}

/**
 * Checks a namespace and returns its folder names, from the root down. Different namespaces never share a folder. A
 * name that the store uses is rejected. `users` can precede only a single user ID.
 */
export function checkNamespace(segments: readonly string[]): string[] {
  if (segments.length > maxSegments) {
    refuse(segments, `it has ${segments.length} segments`, `Use at most ${maxSegments}`);
  }
  const folders = segments.map((segment) => encoded(segment, segments));
  if (folders[0] === usersFolder) {
    if (folders.length === 2) return folders;
    refuse(segments, '"users" can precede only a single user ID', "Start with a different name");
  }
  const taken = folders.find((folder) => storesOwn.test(folder));
  if (taken !== undefined)
    refuse(segments, `"${taken}" is a name that the store uses itself`, "Use a different name");
  return folders;
}

function encoded(segment: unknown, segments: readonly string[]): string {
  if (typeof segment !== "string")
    refuse(segments, "a segment is not a string", "Use strings of 1 to 256 characters");
  try {
    return userSegment(segment);
  } catch (error) {
    if (!(error instanceof SkeinError)) throw error;
    const { problem } = error.details as { problem: string };
    return refuse(
      segments,
      `the segment "${segment}" is not valid: ${problem}`,
      "Use strings of 1 to 256 characters",
      error,
    );
  }
}

function refuse(segments: readonly string[], problem: string, advice: string, cause?: unknown): never {
  const name = JSON.stringify(segments);
  throw new SkeinError(
    "invalid_arguments",
    { problem: `The namespace ${name} cannot be used: ${problem}`, advice },
    { cause },
  );
}
