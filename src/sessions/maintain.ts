import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { present } from "../core/present.ts";
import { formatBytes, formatCount, formatDuration, thrownText } from "../core/text.ts";
import type { MaintenanceDecisionPayload, MaintenanceReportPayload } from "../protocol/upkeep.ts";
import type { RunStore } from "../runs/contract.ts";
import type { ListedSession, Scope, SessionMeta, Store, TrashedSession } from "../store/contract.ts";
import type {
  MaintainedSession,
  MaintenanceDecision,
  MaintenanceInput,
  MaintenanceRule,
  MaintenanceRules,
} from "./plan-maintenance.ts";
import { diskUse, planMaintenance, protectionOf } from "./plan-maintenance.ts";

interface MaintenanceWork {
  readonly store: Pick<Store, "sessions">;
  /** The users whose sessions are maintained. `null` is the unnamed user. */
  readonly users: readonly (string | null)[];
  readonly rules: MaintenanceRules;
  readonly now: number;
  /** Sessions with an open run are skipped. `null` if the store has no runs. */
  readonly runs: Pick<RunStore, "work"> | null;
  /** Stops maintenance after the current action. Completed actions are not undone. */
  readonly signal?: AbortSignal;
}

interface MaintenanceReport {
  readonly mode: "warn" | "enforce";
  /** The actions that the rules require, each with its reason. */
  readonly decisions: readonly MaintenanceDecision[];
  /** The decisions that were carried out. Empty in `warn` mode. */
  readonly done: readonly MaintenanceDecision[];
  /** The decisions that could not be carried out, each with its error. */
  readonly failed: readonly FailedDecision[];
  /**
   * One line per rule, explaining how it applies to the session in `explainUid`. `null` if no explanation was
   * requested.
   */
  readonly explained: readonly string[] | null;
}

interface FailedDecision {
  readonly decision: MaintenanceDecision;
  readonly error: unknown;
}

const pageSize = 1000;
const maxPurgesAtOnce = 100;

/**
 * Decides what should happen to old sessions and, in `enforce` mode, carries out the decisions. With `dryRun`, nothing
 * is changed. With `explainUid`, the rules are explained for one session and nothing is changed.
 */
export async function runMaintenance(
  work: MaintenanceWork,
  { dryRun = false, explainUid }: { readonly dryRun?: boolean; readonly explainUid?: string } = {},
): Promise<MaintenanceReport> {
  const { signal } = work;
  const { mode } = work.rules;
  const input = await inputFor(work);
  const decisions = planMaintenance(input);
  const done: MaintenanceDecision[] = [];
  const failed: FailedDecision[] = [];
  const explained = explainUid === undefined ? null : explain(input, explainUid);
  const report = { mode, decisions, done, failed, explained };
  if (mode === "warn" || dryRun || explained !== null) return report;
  for (const batch of batchesOf(decisions)) {
    signal?.throwIfAborted();
    const results = await Promise.all(
      batch.map((decision) =>
        carryOut(work, decision, input)
          .catch(unlessChanged)
          // One session that is locked or damaged must not prevent maintenance of the others.
          .catch((error: unknown) => void failed.push({ decision, error })),
      ),
    );
    done.push(...batch.filter((_, index) => results[index]));
  }
  return report;
}

function explain(input: MaintenanceInput, sessionUid: string): readonly string[] {
  const session = [...input.sessions, ...input.trashed].find(({ uid }) => uid === sessionUid);
  // The session was created or purged between the lookup and the list.
  return session === undefined ? [] : explainMaintenance(session, input).split("\n");
}

/**
 * Groups consecutive purges, which run concurrently and share one secure deletion. Its cost grows with the size of the
 * databases.
 */
function batchesOf(decisions: readonly MaintenanceDecision[]): MaintenanceDecision[][] {
  const batches: MaintenanceDecision[][] = [];
  for (const decision of decisions) {
    const last = batches.at(-1);
    const isShared = decision.action === "purge" && last?.[0]?.action === "purge";
    if (last !== undefined && isShared && last.length < maxPurgesAtOnce) last.push(decision);
    else batches.push([decision]);
  }
  return batches;
}

/** Collects all users' sessions and trash. */
async function inputFor(work: MaintenanceWork): Promise<MaintenanceInput> {
  const { store, users, rules, now, runs, signal } = work;
  const sessions: MaintainedSession[] = [];
  const trashed: MaintenanceInput["trashed"][number][] = [];
  for (const user of users) {
    const scope = scopeOf(user);
    for (const archived of [false, true]) {
      for await (const page of pagesOf(store, scope, archived)) {
        signal?.throwIfAborted();
        sessions.push(...page.map(maintained));
      }
    }
    trashed.push(...(await store.sessions.trashed(scope)));
  }
  const works = await runs?.work(sessions.map(({ uid }) => uid));
  const hasOpenRun = ({ uid }: MaintainedSession) => (works?.get(uid)?.runId ?? null) !== null;
  return { sessions, trashed, rules, now, hasOpenRun };
}

/** Returns `false` if the session has changed. The next pass then decides again. */
async function carryOut(
  { store }: Pick<MaintenanceWork, "store">,
  { uid, userId, sessionId, action }: MaintenanceDecision,
  { sessions, trashed }: Pick<MaintenanceInput, "sessions" | "trashed">,
): Promise<boolean> {
  const scope = scopeOf(userId);
  if (action === "purge") {
    const removedAt = trashed.find((each) => each.uid === uid)?.removedAt;
    return removedAt !== undefined && store.sessions.purge(scope, sessionId, { ifRemovedAt: removedAt });
  }
  const updatedAt = sessions.find((each) => each.uid === uid)?.updatedAt;
  const [now] = await store.sessions.find(scope, { by: "uid", uid });
  if (now === undefined || updatedAt === undefined) return false;
  // Checked again within the write so that a session in use is not removed.
  const unused = { ifUpdatedAt: updatedAt };
  if (action === "trash") return store.sessions.remove(scope, sessionId, unused);
  await store.sessions.patch(scope, sessionId, { archived: true }, { ...unused, ifVersion: now.version });
  return true;
}

/** Returns `false` if the session changed between the decision and the action. Rethrows any other error. */
function unlessChanged(error: unknown): false {
  if (error instanceof SkeinError && ["conflict", "not_found"].includes(error.code)) return false;
  throw error;
}

async function* pagesOf(
  store: MaintenanceWork["store"],
  scope: Scope,
  archived: boolean,
): AsyncGenerator<readonly ListedSession[]> {
  const query = { archived, includeGlobal: true, includeUnknown: true, limit: pageSize };
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await store.sessions.list(scope, cursor === undefined ? query : { ...query, cursor });
    yield page.sessions;
    cursor = page.nextCursor;
  }
}

function maintained({
  uid,
  userId,
  sessionId,
  key,
  updatedAt,
  meta,
  digest,
}: ListedSession): MaintainedSession {
  const activeAt = Math.max(updatedAt, importedAt(meta));
  const [archived, { bytes }] = [meta.archived === true, digest];
  return { uid, userId, sessionId, key, updatedAt, activeAt, archived, bytes };
}

/** Returns when a session was imported or adopted from a file in the folder, or 0 if neither. */
function importedAt({ importedFrom }: SessionMeta): number {
  if (!isRecord(importedFrom)) return 0;
  return Date.parse(String(importedFrom.importedAt ?? importedFrom.adoptedAt)) || 0;
}

function scopeOf(userId: string | null): Scope {
  return userId === null ? {} : { userId };
}

/**
 * Explains for each rule whether it applies to a session. If a rule does not apply, explains when it will or why it
 * never will.
 */
export function explainMaintenance(
  session: MaintainedSession | TrashedSession,
  input: MaintenanceInput,
): string {
  const decision = planMaintenance(input).find(({ uid }) => uid === session.uid);
  const lines = {
    pruneAfter: pruning(session, input),
    maxSessions: counting(session, input),
    maxDiskBytes: weighing(session, input),
    trashAfter: isTrashed(session) ? emptying(session, input) : "it is not in the trash",
  } satisfies Record<MaintenanceRule, string>;
  const does = input.rules.mode === "enforce" ? "" : " (mode is warn: it is only reported, not carried out)";
  const now =
    decision === undefined
      ? "nothing"
      : `${decision.action}${does}, because of ${decision.rule}: ${decision.why}`;
  return [`now: ${now}`, ...Object.entries(lines).map(([rule, text]) => `${rule}: ${text}`)].join("\n");
}

function isTrashed(session: MaintainedSession | TrashedSession): session is TrashedSession {
  return "removedAt" in session;
}

function pruning(session: MaintainedSession | TrashedSession, input: MaintenanceInput): string {
  const { pruneAfter } = input.rules;
  if (pruneAfter === null) return "no limit is set";
  if (isTrashed(session)) return "it is already in the trash";
  const protection = protectionOf(session, input);
  if (protection !== null) return `does not apply: ${protection}`;
  const idle = input.now - session.activeAt;
  const left = pruneAfter - idle;
  const figures = `no activity for ${formatDuration(idle)}; the limit is ${formatDuration(pruneAfter)}`;
  return left <= 0
    ? `applies: ${figures}`
    : `would be moved to the trash in ${formatDuration(left, Math.ceil)} (${figures})`;
}

function counting(session: MaintainedSession | TrashedSession, input: MaintenanceInput): string {
  const { maxSessions } = input.rules;
  if (maxSessions === null) return "no limit is set";
  if (isTrashed(session)) return "it is in the trash, so it does not count";
  if (session.archived) return "it is archived, so it does not count";
  const ofUser = input.sessions.filter(({ userId, archived }) => userId === session.userId && !archived);
  const figures = `this user has ${formatCount(ofUser.length, "session")}; the maximum is ${maxSessions.toLocaleString("en-US")}`;
  const protection = protectionOf(session, input);
  if (protection !== null) return `does not apply: ${protection} (${figures})`;
  const newer = ofUser.filter(({ activeAt }) => activeAt > session.activeAt).length;
  return `${ofUser.length > maxSessions ? "exceeded" : "not reached"}: ${figures}; ${formatCount(newer, "session")} newer than this one`;
}

function weighing(session: MaintainedSession | TrashedSession, input: MaintenanceInput): string {
  const use = diskUse(input);
  if (use === null) return "no limit is set";
  const figures = `${formatBytes(use.bytes)} of ${formatBytes(use.limit)} is used, ${formatBytes(session.bytes)} by this session`;
  const protection = isTrashed(session) ? null : protectionOf(session, input);
  if (protection !== null) return `does not apply: ${protection} (${figures})`;
  if (use.bytes <= use.limit) return `not reached: ${figures}`;
  return `exceeded: ${figures}; space is freed until ${formatBytes(use.target)} is used`;
}

function emptying({ removedAt }: TrashedSession, { rules: { trashAfter }, now }: MaintenanceInput): string {
  if (trashAfter === null) return "no limit is set";
  const left = trashAfter - (now - removedAt);
  const figures = `in the trash for ${formatDuration(now - removedAt)}; the limit is ${formatDuration(trashAfter)}`;
  return left <= 0
    ? `applies: ${figures}`
    : `would be purged in ${formatDuration(left, Math.ceil)} (${figures})`;
}

/** Returns a decision in the format used for reports. */
export function decisionPayload(decision: MaintenanceDecision): MaintenanceDecisionPayload {
  const { userId, key, sessionId, action, rule, why } = decision;
  return present({ userId, key, sessionId, action, rule, why });
}

/** Returns the decisions that failed, if any, in the format used for reports. */
export function failedPayload(failed: readonly FailedDecision[]): Pick<MaintenanceReportPayload, "failed"> {
  if (failed.length === 0) return {};
  return {
    failed: failed.map(({ decision, error }) => ({
      ...decisionPayload(decision),
      problem: thrownText(error),
    })),
  };
}

/** Returns the explanation of the rules for one session if it was requested. */
export function explainedPayload(
  session: { readonly key: string; readonly sessionId: string } | null,
  lines: readonly string[] | null,
): Pick<MaintenanceReportPayload, "explained"> {
  if (session === null || lines === null) return {};
  const { key, sessionId } = session;
  return { explained: { key, sessionId, lines: [...lines] } };
}
