import type { Config } from "../config/sections/all.ts";
import { readKey } from "../core/keys.ts";
import { formatBytes, formatCount, formatDuration } from "../core/text.ts";
import type { TrashedSession } from "../store/contract.ts";

export type MaintenanceRules = Config["session"]["maintenance"];

/** The properties of a session outside the trash that the rules consider. */
export interface MaintainedSession
  extends Pick<TrashedSession, "uid" | "userId" | "sessionId" | "key" | "bytes"> {
  /** The time of the last conversation entry. */
  readonly updatedAt: number;
  /** The time of the last conversation entry or of the import, whichever is later. */
  readonly activeAt: number;
  readonly archived: boolean;
}

export interface MaintenanceInput {
  readonly sessions: readonly MaintainedSession[];
  readonly trashed: readonly TrashedSession[];
  readonly rules: MaintenanceRules;
  readonly now: number;
  /** Sessions with an open run are skipped. */
  hasOpenRun(session: MaintainedSession): boolean;
}

type MaintenanceAction = "archive" | "trash" | "purge";
export type MaintenanceRule = "pruneAfter" | "maxSessions" | "maxDiskBytes" | "trashAfter";

export interface MaintenanceDecision {
  readonly uid: string;
  readonly userId: string | null;
  readonly sessionId: string;
  readonly key: string;
  readonly action: MaintenanceAction;
  readonly rule: MaintenanceRule;
  /** One sentence, including the numbers behind the decision. */
  readonly why: string;
}

/**
 * Returns the actions to take now, at most one per session. The result does not depend on the input order. Stronger
 * rules are applied first. Weaker rules do not count sessions for which an action is already planned.
 */
export function planMaintenance(input: MaintenanceInput): MaintenanceDecision[] {
  const plan = new Map<string, MaintenanceDecision>();
  const add: Add = ({ uid, userId, sessionId, key }, rest) => {
    plan.set(uid, { uid, userId, sessionId, key, ...rest });
  };
  const ordered: MaintenanceInput = {
    ...input,
    sessions: input.sessions.toSorted((a, b) => a.activeAt - b.activeAt || compare(a.uid, b.uid)),
    trashed: input.trashed.toSorted((a, b) => a.removedAt - b.removedAt || compare(a.uid, b.uid)),
  };
  emptyTrash(ordered, add);
  prune(ordered, add);
  makeRoom(ordered, plan, add);
  archiveSurplus(ordered, plan, add);
  return [...plan.values()];
}

/** Returns why no rule can affect a session, or `null` if rules apply. */
export function protectionOf(session: MaintainedSession, input: MaintenanceInput): string | null {
  const key = readKey(session.key);
  const isMain = "form" in key && key.form === "main" && key.thread === undefined;
  if (isMain) return "it is an agent's main session";
  if (session.key === "global") return "it is the shared session";
  return input.hasOpenRun(session) ? "it has an unfinished run" : null;
}

type Plan = ReadonlyMap<string, MaintenanceDecision>;
type Add = (
  session: MaintainedSession | TrashedSession,
  rest: Pick<MaintenanceDecision, "action" | "rule" | "why">,
) => void;

function emptyTrash({ trashed, rules: { trashAfter }, now }: MaintenanceInput, add: Add): void {
  if (trashAfter === null) return;
  for (const session of trashed.filter(({ removedAt }) => now - removedAt >= trashAfter)) {
    const why = `In the trash for ${formatDuration(now - session.removedAt)}; it is kept for ${formatDuration(trashAfter)}.`;
    add(session, { action: "purge", rule: "trashAfter", why });
  }
}

function prune(input: MaintenanceInput, add: Add): void {
  const { pruneAfter } = input.rules;
  if (pruneAfter === null) return;
  for (const session of input.sessions) {
    const idle = input.now - session.activeAt;
    if (idle < pruneAfter || protectionOf(session, input) !== null) continue;
    const why = `No activity for ${formatDuration(idle)}; sessions are kept for ${formatDuration(pruneAfter)}.`;
    add(session, { action: "trash", rule: "pruneAfter", why });
  }
}

/** Returns the disk usage, its limit, and the target to reach when the limit is exceeded. */
export function diskUse({ sessions, trashed, rules }: MaintenanceInput) {
  const { maxDiskBytes: limit, highWater } = rules;
  const bytes = sumOfBytes([...sessions, ...trashed]);
  return limit === null ? null : { bytes, limit, target: Math.floor(limit * highWater) };
}

/**
 * Plans to free disk space: first by purging the oldest sessions in the trash, then by moving archived sessions to the
 * trash, and finally by moving other sessions there.
 */
function makeRoom(input: MaintenanceInput, plan: Plan, add: Add): void {
  const use = diskUse(input);
  if (use === null) return;
  const planned = (action: MaintenanceAction, all: MaintenanceInput["sessions" | "trashed"]) =>
    sumOfBytes(all.filter(({ uid }) => plan.get(uid)?.action === action));
  let bytes = use.bytes - planned("purge", input.trashed);
  if (bytes <= use.limit) return;
  const figures = `${formatBytes(use.bytes)} of ${formatBytes(use.limit)} is used`;
  for (const session of input.trashed.filter(({ uid }) => !plan.has(uid))) {
    if (bytes <= use.target) return;
    const why = `${figures}; purging the oldest session in the trash frees ${formatBytes(session.bytes)}.`;
    add(session, { action: "purge", rule: "maxDiskBytes", why });
    bytes -= session.bytes;
  }
  bytes -= planned("trash", input.sessions);
  const movable = input.sessions.filter((each) => !plan.has(each.uid) && protectionOf(each, input) === null);
  for (const session of [...movable.filter(isArchived), ...movable.filter((each) => !isArchived(each))]) {
    if (bytes <= use.target) return;
    const what = isArchived(session) ? "the oldest archived session" : "the oldest session";
    const freed = `its ${formatBytes(session.bytes)} will be freed only when it is purged from there`;
    add(session, {
      action: "trash",
      rule: "maxDiskBytes",
      why: `${figures}; ${what} moves to the trash, and ${freed}.`,
    });
    bytes -= session.bytes;
  }
}

function archiveSurplus(input: MaintenanceInput, plan: Plan, add: Add): void {
  const { maxSessions } = input.rules;
  if (maxSessions === null) return;
  const open = input.sessions.filter((each) => !isArchived(each) && !plan.has(each.uid));
  for (const ofUser of Map.groupBy(open, ({ userId }) => userId).values()) {
    const surplus = ofUser.filter((each) => protectionOf(each, input) === null);
    const why = `This user has ${formatCount(ofUser.length, "session")}; the maximum is ${maxSessions.toLocaleString("en-US")}, so the oldest are archived.`;
    for (const session of surplus.slice(0, Math.max(0, ofUser.length - maxSessions))) {
      add(session, { action: "archive", rule: "maxSessions", why });
    }
  }
}

function isArchived({ archived }: MaintainedSession): boolean {
  return archived;
}

function sumOfBytes(sessions: readonly { readonly bytes: number }[]): number {
  return sessions.reduce((sum, { bytes }) => sum + bytes, 0);
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
