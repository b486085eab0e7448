import { createHash } from "node:crypto";
import { SkeinError } from "./errors.ts";
import { isReservedUserId, spaceOf } from "./space.ts";

/**
 * Encodes user IDs as folder names. The encoding is reversible and uses lowercase ASCII, so two IDs never share a
 * folder, even on a case-insensitive disk. An ID that is too long gets a hashed folder name that starts with `~`.
 */

const longestUserId = 256;
const longestSegment = 200;
/** Windows device names, with any extension. */
const deviceName = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)/;

/**
 * Returns the folder name for a user ID, for example `%41nn%40example.org` for `Ann@example.org`. If the encoded ID
 * exceeds 200 bytes, the name is `~<sha256>` and the ID is stored in `user.json`.
 */
export function userSegment(userId: string): string {
  const problem = userIdProblem(userId);
  if (problem !== null) throw new SkeinError("invalid_user_id", { userId, problem });
  const bytes = new TextEncoder().encode(userId);
  let segment = "";
  for (const [index, byte] of bytes.entries()) {
    const char = String.fromCharCode(byte);
    const edgeDot = char === "." && (index === 0 || index === bytes.length - 1);
    segment += /[a-z0-9._-]/.test(char) && !edgeDot ? char : escapeByte(byte);
  }
  if (deviceName.test(segment)) segment = escapeByte(segment.charCodeAt(0)) + segment.slice(1);
  return segment.length <= longestSegment ? segment : `~${sha256(bytes)}`;
}

/** Returns the user ID for a folder name, or `null` for a hashed name, whose ID is in its `user.json`. */
export function userIdOfSegment(segment: string): string | null {
  if (/^~[0-9a-f]{64}$/.test(segment)) return null;
  const userId = decode(segment);
  // Other spellings are rejected because they would be a second name for the same user.
  if (userId === null || userIdProblem(userId) !== null || userSegment(userId) !== segment) {
    throw new SkeinError("invalid_path_segment", { segment, problem: "it is not in the encoded form" });
  }
  return userId;
}

/** No encoded user ID contains `@`, so this cannot be another user's folder. */
const unnamedUserFolder = "@unnamed";

/** For example, `/srv/{userId}` becomes `/srv/%41nn` for `Ann`. */
export function expandFolder(
  template: string,
  { userId, agentId }: { readonly userId: string | null; readonly agentId: string },
): string {
  const names = { userId: userId === null ? unnamedUserFolder : userSegment(userId), agentId };
  return template.replace(
    /(?<=[/\\])\{(userId|agentId)\}(?=[/\\]|$)/g,
    (_, name: keyof typeof names) => names[name],
  );
}

function userIdProblem(userId: string): string | null {
  if (userId === "") return "it is empty";
  if (!userId.isWellFormed()) return "it is not well-formed Unicode";
  if (isReservedUserId(userId)) {
    const { userId: inSpace } = spaceOf(userId);
    if (inSpace === userId) return "it starts with the control character U+0001";
    return inSpace === null ? null : userIdProblem(inSpace);
  }
  const tooLong = userId.length > 2 * longestUserId || Array.from(userId).length > longestUserId;
  return tooLong ? `it is longer than ${longestUserId} characters` : null;
}

function decode(segment: string): string | null {
  if (!/^(?:[a-z0-9._-]|%[0-9a-f]{2})+$/.test(segment)) return null;
  const bytes = segment
    .match(/%..|./g)
    ?.map((each) => (each.length === 3 ? Number.parseInt(each.slice(1), 16) : each.charCodeAt(0)));
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes ?? []));
  } catch {
    return null;
  }
}

function escapeByte(byte: number): string {
  return `%${byte.toString(16).padStart(2, "0")}`;
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
