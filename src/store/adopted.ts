import { parsingSession } from "../core/parse-session.ts";
import type { Steps } from "../core/slices.ts";
import type { TreeOptions } from "../core/tree.ts";
import { SessionTree } from "../core/tree.ts";

/** A tree of its own with the same entries, under another session id. What the old header said of its store is dropped. */
export function* adoptedTree(
  tree: SessionTree,
  init: { readonly id: string; readonly cwd: string },
  options: TreeOptions,
): Steps<SessionTree> {
  const { skein: _skein, ...header } = tree.header;
  const lines: Buffer[] = [];
  for (const line of tree.encodeLines()) {
    const isFirst = lines.length === 0;
    lines.push(Buffer.from(isFirst ? `${JSON.stringify({ ...header, ...init })}\n` : line));
    yield line.length;
  }
  return yield* SessionTree.growing(yield* parsingSession(Buffer.concat(lines)), options);
}
