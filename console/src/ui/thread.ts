/** The color of a session: one of twelve threads, the same in every view. */
export function threadOf(sessionId: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < sessionId.length; index += 1) {
    hash = Math.imul(hash ^ sessionId.charCodeAt(index), 0x01000193);
  }
  // FNV's low bits are weak for short IDs; fold the high ones in.
  return ((hash ^ (hash >>> 15)) >>> 0) % 12;
}
