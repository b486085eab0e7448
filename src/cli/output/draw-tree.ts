/** What the drawing needs of an entry. */
export interface DrawnEntry {
  readonly id: string;
  readonly parentId: string | null;
}

export interface DrawnLine<T> {
  /** The branches to the left of the entry. */
  readonly rails: string;
  readonly entry: T;
}

/** Branches nested deeper are drawn at this depth, marked: rails must not grow with the tree. */
const deepest = 24;

/**
 * Draws a forest, one line an entry, in the order of the file. A chain runs straight down; where it parts, the last
 * child goes on straight and the others stand aside on a rail. Several roots stand on rails of their own. No recursion.
 */
export function* drawTree<T extends DrawnEntry>(entries: readonly T[]): Generator<DrawnLine<T>> {
  const children = new Map<string | null, T[]>();
  for (const entry of entries) {
    const siblings = children.get(entry.parentId);
    if (siblings === undefined) children.set(entry.parentId, [entry]);
    else siblings.push(entry);
  }
  const waiting: { entry: T; rails: string; below: string; depth: number }[] = [];
  const push = (parent: string | null, below: string, depth: number) => {
    const kin = children.get(parent) ?? [];
    for (let index = kin.length - 1; index >= 0; index--) {
      const entry = kin[index] as T;
      const last = index === kin.length - 1;
      const roots = parent === null && kin.length > 1;
      if (last && !roots) waiting.push({ entry, rails: below, below, depth });
      else if (depth >= deepest) waiting.push({ entry, rails: `${below}…`, below, depth });
      else {
        const rails = `${below}${last ? "└─" : "├─"}`;
        waiting.push({ entry, rails, below: `${below}${last ? "  " : "│ "}`, depth: depth + 1 });
      }
    }
  };
  push(null, "", 0);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    yield { rails: next.rails, entry: next.entry };
    push(next.entry.id, next.below, next.depth);
  }
}
