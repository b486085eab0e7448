import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import type { FilesStore } from "../../src/app/folder.ts";
import { openFolder } from "../../src/app/folder.ts";
import { folderApp } from "../../src/app/folder-app.ts";
import { loadConfig } from "../../src/config/load.ts";
import { findProblems } from "../../src/core/check-schema.ts";
import type { Principal } from "../../src/gateway/auth/principal.ts";
import { Tokens } from "../../src/gateway/auth/tokens.ts";
import { tokenHandlers } from "../../src/gateway/methods/admin.ts";
import type { FolderApp, MethodApp } from "../../src/gateway/methods/dispatch.ts";
import type { ChangeMethod, TokenMethod } from "../../src/gateway/methods/handlers.ts";
import { changeHandlers } from "../../src/gateway/methods/handlers.ts";
import { localCalls, localPrincipal } from "../../src/gateway/methods/local-calls.ts";
import type { Calls } from "../../src/protocol/calls.ts";
import { methodTable } from "../../src/protocol/method-table.ts";
import { seedFolder } from "./cli-folder.ts";

export interface FolderCalls {
  readonly root: string;
  readonly store: FilesStore;
  readonly tokens: Tokens;
  readonly deps: FolderApp & Pick<MethodApp, "tokens">;
  /**
   * Calls methods as the holder of this token, by default as the folder's owner. Every result is checked against its
   * method's schema.
   */
  as(principal?: Partial<Principal>): Calls<ChangeMethod | TokenMethod>;
  /** All data of the given users, for comparison. */
  everything(...users: readonly (string | null)[]): Promise<unknown>;
}

const folders: string[] = [];
const stores: FilesStore[] = [];
/** Copied for every test in this process, because its test files can share this module. */
let seeded: string | null = null;

/** A seeded folder with its configuration and the methods that change it. */
export async function openFolderCalls(config = ""): Promise<FolderCalls> {
  seeded ??= await seedOnce();
  const root = newFolder();
  cpSync(seeded, root, { recursive: true });
  writeFileSync(join(root, "skein.yaml"), config);
  const loaded = await loadConfig({ cwd: root, env: { HOME: root }, root });
  const store = await openFolder({ root, durability: "os" });
  stores.push(store);
  const folder = folderApp(store, loaded);
  const tokens = new Tokens(store.work, { clock: folder.clock });
  const deps = { ...folder, tokens };
  const handlers = { ...changeHandlers(deps), ...tokenHandlers(deps) };
  return {
    root,
    store,
    tokens,
    deps,
    as: (principal = {}) => checked(localCalls(handlers, { ...localPrincipal, ...principal })),
    everything: (...users) => Promise.all(users.map((user) => everythingOf(store, user))),
  };
}

/** For use in afterEach. */
export async function closeFolderCalls(): Promise<void> {
  for (const store of stores.splice(0)) await store.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

async function seedOnce(): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), "skein-calls-seed-"));
  process.once("exit", () => rmSync(root, { recursive: true, force: true }));
  await seedFolder(root);
  return root;
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "skein-calls-"));
  folders.push(folder);
  return folder;
}

function checked<M extends ChangeMethod | TokenMethod>(calls: Calls<M>): Calls<M> {
  return {
    call: async (method, params, options) => {
      const payload = await calls.call(method, params, options);
      expect(findProblems(methodTable[method].result, payload, 5)).toEqual([]);
      return payload;
    },
  };
}

async function everythingOf({ sessions }: FilesStore, userId: string | null): Promise<unknown> {
  const scope = userId === null ? {} : { userId };
  const query = { includeGlobal: true, includeUnknown: true, limit: 1000 };
  const shown = await sessions.list(scope, query);
  const archived = await sessions.list(scope, { ...query, archived: true });
  return { shown: shown.sessions, archived: archived.sessions, trashed: await sessions.trashed(scope) };
}
