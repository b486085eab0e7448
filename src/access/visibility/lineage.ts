/** A session that somebody asks about, as far as rules go by it. Keys and ids as the store keeps them. */
export interface AccessTarget {
  readonly userId: string | null;
  readonly agentId: string;
  readonly key: string;
  /** The key of the session that spawned it; never left out, so that no child is forgotten to be one. */
  readonly spawnedBy: string | null;
}

/** Whether a session was spawned by the one with this key, or by one that was, at any depth. It may throw. */
export type InTree = (ancestorKey: string, target: AccessTarget) => boolean | Promise<boolean>;

/** The `spawnedBy` of a session of the same user, by its key; `null`: it has none, or is gone. It may throw. */
export type SpawnerOf = (key: string) => string | null | Promise<string | null>;

/** Far deeper than agents may spawn; a longer lineage was made by something else, and is nobody's. */
const deepest = 100;

/** Follows `spawnedBy` upwards, over agents too. A lineage that goes round ends where it began. */
export function inTreeBy(spawnerOf: SpawnerOf, most: number = deepest): InTree {
  return async (ancestorKey, target) => {
    const seen = new Set([target.key]);
    let key = target.spawnedBy;
    while (key !== null && key !== ancestorKey) {
      if (seen.has(key) || seen.size >= most) return false;
      seen.add(key);
      key = await spawnerOf(key);
    }
    return key !== null;
  };
}
