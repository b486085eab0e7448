import type { Child, RunStore, SessionWork } from "../../runs/contract.ts";

/** What a session spawned, at any depth. */

export interface Member {
  readonly child: Child;
  /** 1: its own child. */
  readonly depth: number;
}

/** Spawning goes five deep; a lineage that goes round is followed so far and no further. */
const deepest = 6;

/** The children of a session with all of theirs, each behind its parent; children newest first. */
export async function familyOf(
  runs: Pick<RunStore, "children">,
  userId: string | null,
  key: string,
  depth = 1,
): Promise<readonly Member[]> {
  if (depth > deepest) return [];
  const members: Member[] = [];
  for (const child of await runs.children(userId, key)) {
    members.push({ child, depth });
    members.push(...(await familyOf(runs, userId, child.run.session.key, depth + 1)));
  }
  return members;
}

export function isAtWork(work: SessionWork | undefined): boolean {
  return work?.status === "queued" || work?.status === "running" || work?.status === "waiting";
}

/** By session, whether something is open in it. */
export async function workOf(
  runs: Pick<RunStore, "work">,
  children: readonly Child[],
): Promise<ReadonlyMap<string, SessionWork>> {
  return runs.work(children.map(({ run }) => run.session.uid));
}
