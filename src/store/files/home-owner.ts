import { dirname, join } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import { defaultNamespace } from "../../core/namespace.ts";
import { userIdOfSegment, userSegment } from "../../core/path-segment.ts";
import { isRecord } from "../../core/shape.ts";
import type { Disk } from "./disk.ts";
import { makeFolderDurably, readOwn, writeBeside } from "./disk-files.ts";
import { homeOf } from "./layout.ts";
import type { LockSettings } from "./write-lock.ts";

type Alone = Pick<LockSettings, "exclusively">;

/**
 * Whose a home is. The default ones say it by their name; any other says it in its `user.json`: `{"userId": …}`, `null`
 * for the unnamed user. `undefined`: nothing says it.
 */
export type HomeOwner = string | null | undefined;

export function userFile(root: string, home: string): string {
  return join(root, home, "user.json");
}

export function ownerOf(root: string, home: string, disk: Disk): HomeOwner {
  const said = saidIn(userFile(root, home), disk);
  const named = ownerByName(home);
  if (named !== undefined || said === null) return named;
  // Under `users` a name that is a hash must be that of whoever is written down.
  const isHash = isDefault(home);
  return isHash && (said.userId === null || home !== homeOf(defaultNamespace, said.userId))
    ? undefined
    : said.userId;
}

/** Refuses a home that is another user's: their blobs and originals would lie together. */
export function checkOwner(root: string, home: string, disk: Disk, userId: string | null): void {
  const owner = ownerOf(root, home, disk);
  if (owner !== undefined && owner !== userId) refuseShared(home);
}

function refuseShared(home: string): never {
  throw new SkeinError("conflict", {
    problem: `The namespace gives two users the folder "${home}"`,
    advice: "Let it give each user a folder of their own",
  });
}

/** Writes down whose a home is where its name does not say so, before anything else is there. */
export async function noteOwner(
  settings: { readonly root: string; readonly disk: Disk; readonly lock: Alone; newId(): string },
  home: string,
  userId: string | null,
): Promise<void> {
  const { root, disk, lock, newId } = settings;
  checkOwner(root, home, disk, userId);
  if (ownerOf(root, home, disk) !== undefined) return;
  const path = userFile(root, home);
  await makeFolderDurably(disk, dirname(path));
  const bytes = Buffer.from(`${JSON.stringify({ userId })}\n`);
  const temporary = await writeBeside(disk, path, bytes, newId(), true);
  // Two users who come at once must not each write down that it is theirs.
  const isFirst = lock.exclusively(() => {
    const isFree = saidIn(path, disk) === null;
    if (isFree) disk.rename(temporary, path);
    return isFree;
  });
  if (!isFirst) disk.unlink(temporary);
  checkOwner(root, home, disk, userId);
  await disk.syncFolder(dirname(path));
}

/** By the name of a default home alone. */
function ownerByName(home: string): HomeOwner {
  if (home === "") return null;
  if (!isDefault(home)) return undefined;
  try {
    return userIdOfSegment(home.slice(home.indexOf("/") + 1)) ?? undefined;
  } catch {
    return undefined; // a folder that we did not name
  }
}

function isDefault(home: string): boolean {
  return /^users\/[^/]+$/.test(home);
}

function saidIn(path: string, disk: Disk): { readonly userId: string | null } | null {
  const bytes = readOwn(disk, path);
  if (bytes === null) return null;
  try {
    const held: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    if (!isRecord(held)) return null;
    if (held.userId === null) return { userId: null };
    if (typeof held.userId !== "string") return null;
    userSegment(held.userId); // what cannot be a user id is none
    return { userId: held.userId };
  } catch {
    return null; // damaged: it says nothing
  }
}
