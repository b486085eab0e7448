import { parseSession } from "../core/parse-session.ts";
import type { TreeOptions } from "../core/tree.ts";
import { SessionTree } from "../core/tree.ts";

/** A tree of its own with the same entries, under another session id. What the old header said of its store is dropped. */
export function adoptedTree(
  tree: SessionTree,
  init: { readonly id: string; readonly cwd: string },
  options: TreeOptions,
): SessionTree {
  const [, ...entries] = tree.encodeLines();
  const { skein: _skein, ...header } = tree.header;
  const first = `${JSON.stringify({ ...header, ...init })}\n`;
  return SessionTree.from(
    parseSession(Buffer.concat([first, ...entries].map((line) => Buffer.from(line)))),
    options,
  );
}
