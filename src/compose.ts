import { existsSync, globSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { respectRuns } from "./compose/settings.ts";
import type { ModelSettings } from "./config/model-settings.ts";
import type { Clock } from "./core/clock.ts";
import type { SessionContext } from "./core/context.ts";
import type { IdSource } from "./core/ids.ts";
import { present } from "./core/present.ts";
import type { SessionTree } from "./core/tree.ts";
import type { ContextPayload } from "./protocol/session-payloads.ts";
import type { XrayOptions } from "./sessions/xray.ts";
import type { SessionRecord, Store } from "./store/contract.ts";
import { realDisk } from "./store/files/disk.ts";
import { readWhole } from "./store/files/disk-files.ts";
import type { Namespace } from "./store/files/layout.ts";
import { workDbName } from "./store/files/layout.ts";
import { readSessionFile } from "./store/files/read-session-file.ts";
import type { Recovery } from "./store/files/recover.ts";
import type { FilesStore } from "./store/files/store.ts";
import { openFilesStore } from "./store/files/store.ts";
import { createMemoryStore } from "./store/memory/store.ts";
import { noSuchSession } from "./store/refusals.ts";
import type { ModelRef } from "./transcript/parse-model.ts";
import { apiOf } from "./transcript/policy.ts";

/** The composition root: the only file that knows concrete stores and runtimes. */

export { pendingIn, workIn } from "./compose/settings.ts";
export type { CheckFinding, Progress } from "./store/files/check.ts";
export { repairSessionFile } from "./store/files/lone-file.ts";
export { readSessionFile } from "./store/files/read-session-file.ts";
export type { Recovery } from "./store/files/recover.ts";
export type { FilesStore } from "./store/files/store.ts";

/**
 * Where a store keeps its sessions, and how.
 *
 * @example
 * ```ts
 * import type { StoreOptions } from "skein/store";
 * const options: StoreOptions = { dir: ".skein", durability: "os" };
 * ```
 */
export interface StoreOptions {
  /** The folder of everything; made if it is not there. */
  readonly dir: string;
  /** `full` (default): on the disk before it is acknowledged. `os`: left to the kernel. */
  readonly durability?: "full" | "os";
  /** How long to wait for another process that has a session's lock; by default 10,000. */
  readonly lockTimeoutMs?: number;
  /** Which folders a user's sessions are in; by default `users/<user>`. */
  readonly namespace?: Namespace;
  /** Told what had to be put right, or could not be. */
  readonly report?: (found: Recovery) => void;
  readonly clock?: Clock;
  readonly newId?: IdSource;
}

/**
 * Opens a store: sessions as files in a folder, or, with `memory`, for as long as the process lives.
 *
 * @example
 * ```ts
 * import { createStore } from "skein/store";
 * const store = await createStore({ dir: ".skein" });
 * const scope = { userId: "ann", agentId: "main" };
 * const { sessionId } = await store.sessions.create(scope, { key: "agent:main:main", cwd: "/home/ann" });
 * await store.sessions.append(scope, sessionId, [
 *   { draft: { type: "message", message: { role: "user", content: "Plan three days in Kyoto" } } },
 * ]);
 * const context = await store.sessions.context(scope, sessionId);
 * await store.close();
 * ```
 */
export function createStore(options: StoreOptions): Promise<FilesStore>;
export function createStore(options: {
  readonly memory: true;
  readonly clock?: Clock;
  readonly newId?: IdSource;
}): Promise<Store>;
export async function createStore(
  options: StoreOptions | { readonly memory: true; readonly clock?: Clock; readonly newId?: IdSource },
): Promise<Store> {
  if ("memory" in options) return createMemoryStore(options);
  const { dir, ...rest } = options;
  return respectRuns(await openFilesStore({ ...rest, root: resolve(dir) }));
}

export interface FolderOptions {
  readonly root: string;
  readonly durability?: "full" | "os";
  readonly lockTimeoutMs?: number;
  /** Told what had to be put right, or could not be. */
  report?(found: Recovery): void;
  /** Looks whether the databases are sound before they are used. */
  readonly verify?: boolean;
}

/** Opens the store in a folder, for a process that does one thing and ends; makes the folder where it is not there. */
export async function openFolder(options: FolderOptions): Promise<FilesStore> {
  return respectRuns(await openFilesStore({ ...options, index: "in place" }));
}

/** Whether somebody has kept sessions in a folder; one that holds other things is not to be littered. */
export function holdsSessions(root: string): boolean {
  if (existsSync(join(root, workDbName))) return true;
  const homes = ["agents/*/sessions", "users/*/agents/*/sessions"];
  return globSync(homes, { cwd: root }).length > 0;
}

type Placed = Pick<SessionRecord, "userId" | "sessionId">;

/** The working set of a session in a folder: what pi and others open. */
export function transcriptPath(store: FilesStore, session: Placed): string {
  return filesOf(store, session).working;
}

/** Everything that was ever said in a session, its damage too, read at once. */
export function readLog(store: FilesStore, session: Placed): Promise<SessionTree> {
  return readSessionFile(logPath(store, session));
}

export function logPath(store: FilesStore, session: Placed): string {
  return filesOf(store, session).log;
}

/** The blobs of a session, read when they are asked for. */
export function readBlobs(store: FilesStore, session: Placed): (sha256: string) => Uint8Array | null {
  const folder = join(dirname(dirname(logPath(store, session))), "blobs");
  return (sha256) => (/^[0-9a-f]{64}$/.test(sha256) ? readWhole(realDisk, join(folder, sha256)) : null);
}

function filesOf({ upkeep }: FilesStore, { userId, sessionId }: Placed): { log: string; working: string } {
  return upkeep.files(userId === null ? {} : { userId }, sessionId) ?? noSuchSession(sessionId);
}

/** What is known of a request beside the session and the model. */
export interface RequestOptions extends Omit<XrayOptions, "contextWindow" | "vision" | "overrides"> {
  /** What the configuration says of the model. */
  readonly settings?: ModelSettings;
  /** Lets the provider's package make the body that it would send, and adds what it did to it. */
  readonly wire?: boolean;
}

/**
 * What a model would be sent from a context, as far as the request itself: what it cannot be asked for is among the
 * changes.
 */
export async function contextForModel(
  context: SessionContext,
  model: ModelRef,
  { settings, wire, ...known }: RequestOptions = {},
): Promise<ContextPayload> {
  const { modelInfo } = await import("./transcript/model-table.ts");
  const { modelRequest } = await import("./runtimes/ai-sdk/model-request.ts");
  const { shrinkImage } = await import("./runtimes/shrink-image.ts");
  const { xray } = await import("./sessions/xray.ts");
  const { contextWindow, maxOutput, vision } = settings ?? {};
  const table = modelInfo(model.provider, model.model, apiOf(model.provider, model.api));
  const info = { ...table, ...present({ contextWindow, maxOutput, vision }) };
  const seen = await xray(context, model, {
    ...known,
    images: { shrink: shrinkImage, ...known.images },
    ...present({ contextWindow, vision, overrides: settings?.overrides }),
  });
  const { api, system, thinkingLevel, messages } = seen.request;
  const policy = { ...model, api };
  const request = modelRequest({ transcript: messages, policy, system, thinkingLevel, info });
  const changes = [...seen.changes, ...request.changes];
  if (wire !== true) return { ...seen, changes };
  const { captureWire } = await import("./runtimes/ai-sdk/wire.ts");
  const { body, warnings } = await captureWire(request.options, policy, settings?.type);
  return { ...seen, changes: [...changes, ...warnings], wire: body };
}
