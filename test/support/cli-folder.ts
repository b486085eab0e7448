import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionMeta, Store } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import { parseSession, SessionTree } from "../../src/index.ts";
import { family } from "./cli.ts";

/** The time at which the seeded folder is read, a little more than two days after the family was active. */
export const seedNow = Date.UTC(2026, 9, 6, 12);

export function familyTree(member: string): SessionTree {
  return SessionTree.from(parseSession(readFileSync(join(family, `${member}.jsonl`))));
}

/**
 * A folder with the sample family, a session in the trash, another agent, and a second user with a session of the same
 * name.
 */
export async function seedFolder(root: string): Promise<void> {
  const store = await createStore({ dir: root, durability: "os" });
  try {
    await seed(store);
    // On a busy machine, closing can leave the index behind, and `doctor` then reports this.
    await store.upkeep.bringUpIndex();
  } finally {
    await store.close();
  }
}

async function seed({ sessions }: Store): Promise<void> {
  const adopt = (key: string, sessionId: string, member: string, meta: SessionMeta = {}, userId?: string) =>
    sessions.adopt(
      userId === undefined ? {} : { userId },
      { key, sessionId, cwd: "/home/ann/trip", meta },
      familyTree(member),
    );
  const trip = "agent:main:session:trip";
  await adopt(trip, "trip", "main", { label: "holiday" });
  await adopt("agent:main:subagent:trip:gardens", "01-gardens", "gardens", { spawnedBy: trip });
  await adopt("agent:main:subagent:trip:food", "01-food", "food", { spawnedBy: trip });
  await adopt("agent:main:main", "home", "food");
  await adopt("agent:main:cron:daily", "daily", "food", { label: "reports" });
  await adopt("agent:research:main", "lab", "gardens");
  await adopt("agent:main:session:old-trip", "old-trip", "food", { label: "last year" });
  await sessions.remove({}, "old-trip");
  await adopt(trip, "trip", "gardens", { label: "hers" }, "alice");
}
