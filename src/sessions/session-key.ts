import type { SessionTree } from "../core/tree.ts";

/** The key that a session's own file names; a file from elsewhere names none. */
export function sessionKeyOf(tree: SessionTree): string | null {
  const key = tree.header.skein?.key;
  return typeof key === "string" ? key : null;
}
