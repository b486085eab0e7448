import { SkeinError } from "./errors.ts";
import { userSegment } from "./path-segment.ts";
import { spaceOf } from "./space.ts";

/** Under which folders of the root somebody's sessions lie. */

const usersFolder = "users";
const mostSegments = 8;
/** What the store keeps in a folder of its own accord, and the databases with all that lies beside them. */
const storesOwn =
  /^(?:agents|trash|users|user\.json|sessions\.json|gateway\.json|token|(?:work|index|locks)\.db.*)$/;

/** The folders of a user: `users` and the id; the unnamed user's are in the root itself. */
export function defaultNamespace({ userId }: { readonly userId?: string | null }): readonly string[] {
  const { namespace, userId: named } = spaceOf(userId ?? null);
  return namespace ?? (named === null ? [] : [usersFolder, named]);
}

/**
 * Checks a namespace and gives its folder names, from the root down. No two namespaces have the same ones, and none is
 * a name that the store needs itself; `users` stands before one user id alone.
 */
export function checkNamespace(segments: readonly string[]): string[] {
  if (segments.length > mostSegments) {
    refuse(segments, `it has ${segments.length} segments`, `Use ${mostSegments} at the most`);
  }
  const folders = segments.map((segment) => encoded(segment, segments));
  if (folders[0] === usersFolder) {
    if (folders.length === 2) return folders;
    refuse(segments, '"users" stands before one user id and nothing else', "Begin with another name");
  }
  const taken = folders.find((folder) => storesOwn.test(folder));
  if (taken !== undefined) refuse(segments, `"${taken}" is a name of the store's own`, "Use another name");
  return folders;
}

function encoded(segment: unknown, segments: readonly string[]): string {
  if (typeof segment !== "string")
    refuse(segments, "a segment is no text", "Use texts of 1 to 256 characters");
  try {
    return userSegment(segment);
  } catch (error) {
    if (!(error instanceof SkeinError)) throw error;
    const { problem } = error.details as { problem: string };
    return refuse(
      segments,
      `of the segment "${segment}" ${problem}`,
      "Use texts of 1 to 256 characters",
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
