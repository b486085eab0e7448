import type { ParsedKey } from "../core/keys.ts";
import { parseKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import type { SessionRow, TrashRow } from "../protocol/session-list.ts";
import type { SessionWork } from "../runs/contract.ts";
import type { ListedSession, SessionMeta, TrashedSession } from "../store/contract.ts";

/** What a list's row says beside what the store's record does. */
export interface RowExtras {
  readonly transcriptPath?: string | undefined;
  readonly childSessions?: readonly string[] | undefined;
  readonly bytes?: number;
  /** Left out: not known. */
  readonly work?: Pick<SessionWork, "status" | "startedAt" | "endedAt"> | undefined;
  readonly details?: RowDetails | undefined;
}

/** What a row says where it is asked for, as its reader may see it. */
export interface RowDetails {
  readonly cwd?: string;
  readonly summary?: string;
}

/** A session as `sessions.list` shows it. Pure: the same row wherever it is asked for. */
export function listRow(session: ListedSession, extras: RowExtras = {}): SessionRow {
  const { key, kind, sessionId, updatedAt, meta, name, userId, digest } = session;
  const { delivery } = meta;
  const children = extras.childSessions ?? [];
  return present({
    key,
    kind,
    channel: channelOf(parseKey(key), meta),
    label: meta.label,
    displayName: meta.displayName ?? name,
    deliveryContext:
      delivery === undefined
        ? undefined
        : present({ channel: delivery.channel, to: delivery.to, accountId: delivery.accountId }),
    updatedAt,
    sessionId,
    model: modelOf(session),
    contextTokens: digest.contextTokens,
    totalTokens: digest.totalTokens,
    estimatedCostUsd: digest.costUsd,
    ...workFields(updatedAt, extras.work),
    childSessions: children.length === 0 ? undefined : [...children],
    spawnedBy: meta.spawnedBy,
    thinkingLevel: meta.thinkingLevel ?? digest.thinkingLevel,
    verboseLevel: meta.verboseLevel,
    systemSent: flag(meta.systemSent),
    abortedLastRun: flag(meta.abortedLastRun) ?? (extras.work?.status === "aborted" ? true : undefined),
    sendPolicy: meta.sendPolicy,
    ...lastTarget(session.meta),
    userId,
    bytes: extras.bytes,
    transcriptPath: extras.transcriptPath,
    cwd: extras.details?.cwd,
    summary: extras.details?.summary,
  });
}

/** A session in the trash as `sessions.list` shows it. */
export function trashRow({
  key,
  kind,
  sessionId,
  label,
  removedAt,
  bytes,
  userId,
}: TrashedSession): TrashRow {
  return present({ key, kind, sessionId, label, removedAt, bytes, userId });
}

/** The model that was chosen for the session, else the one that answered last. */
export function modelOf({ meta, digest }: ListedSession): string | null {
  if (meta.model !== undefined) return meta.model;
  return digest.model === null ? null : `${digest.model.provider}/${digest.model.modelId}`;
}

/** `startedAt`: of the first run. `runtimeMs`: up to the end of the last, or to the last entry while one is open. */
function workFields(updatedAt: number, work: RowExtras["work"]) {
  if (work === undefined) return {};
  const { status, startedAt, endedAt } = work;
  const runtimeMs = startedAt === null ? null : Math.max(0, (endedAt ?? updatedAt) - startedAt);
  return { status, startedAt, endedAt, runtimeMs };
}

/** The channel of a session, from its key and what is known of it. */
export function channelOf(key: ParsedKey, meta: SessionMeta): string {
  if (key.form === "cron" || key.form === "hook" || key.form === "node") return "internal";
  const named = key.form === "direct" || key.form === "group" ? key.channel : undefined;
  return meta.channel ?? meta.delivery?.channel ?? text(meta.lastChannel) ?? named ?? "unknown";
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function flag(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

/** The delivery context as a whole, else where the last reply went. */
function lastTarget({
  delivery,
  ...meta
}: SessionMeta): Pick<SessionRow, "lastChannel" | "lastTo" | "lastAccountId"> {
  const { channel, to, accountId } = delivery ?? {
    channel: text(meta.lastChannel),
    to: text(meta.lastTo),
    accountId: text(meta.lastAccountId),
  };
  return present({ lastChannel: channel, lastTo: to, lastAccountId: accountId });
}
