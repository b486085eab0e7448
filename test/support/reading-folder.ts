import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import type { FilesStore } from "../../src/app/folder.ts";
import { openFolder } from "../../src/app/folder.ts";
import { folderApp } from "../../src/app/folder-app.ts";
import { loadConfig } from "../../src/config/load.ts";
import { findProblems } from "../../src/core/check-schema.ts";
import type { Params, Result } from "../../src/entry-client.ts";
import type { Scope } from "../../src/entry-store.ts";
import type { Principal, TokenScope } from "../../src/gateway/auth/principal.ts";
import type { FolderApp } from "../../src/gateway/methods/dispatch.ts";
import type { ReadMethod } from "../../src/gateway/methods/handlers.ts";
import { readHandlers } from "../../src/gateway/methods/handlers.ts";
import { localCalls } from "../../src/gateway/methods/local-calls.ts";
import type { EntryDraft } from "../../src/index.ts";
import { methodTable } from "../../src/protocol/method-table.ts";

/** A value that the configuration marks as a secret, and the text that replaces it. */
export const secret = "tiger-lily-secret-77";
export const maskOfSecret = "tiger-…t-77";

type Call = <M extends ReadMethod>(method: M, params: Params<M>) => Promise<Result<M>>;

export interface ReadingFolder {
  readonly dir: string;
  readonly store: FilesStore;
  readonly deps: FolderApp;
  /** Calls methods with a token that belongs to this user and has these scopes. Every payload is checked against its schema. */
  as(user: string | null, ...scopes: TokenScope[]): Call;
  /** With the `admin` scope and without it. */
  readonly admin: Call;
  readonly reader: Call;
  append(scope: Scope, sessionId: string, ...drafts: EntryDraft[]): Promise<string[]>;
  close(): Promise<void>;
}

/** Replaces a method of the ledger or the store. */
interface ReadDoubles {
  readonly pending?: FolderApp["runs"]["pending"];
  readonly workingSets?: FilesStore["upkeep"]["workingSets"];
}

/** Returns the same object with one method replaced. Its other methods can still use private members. */
function withMethod<T extends object, Name extends keyof T>(target: T, name: Name, method: T[Name]): T {
  return new Proxy(target, {
    get: (_, asked) => {
      const own: unknown = asked === name ? method : Reflect.get(target, asked, target);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
}

/** A folder with a configuration, read through the methods by different principals. */
export async function readingFolder({
  pending,
  workingSets,
  ...more
}: Partial<FolderApp> & ReadDoubles = {}): Promise<ReadingFolder> {
  const home = mkdtempSync(join(tmpdir(), "skein-reading-"));
  const dir = join(home, ".skein");
  const provider = `{ apiKey: ${secret} }`;
  const agents = "{ main: { model: anthropic/claude-sonnet-4-5, system: You plan journeys. } }";
  writeFileSync(
    join(home, "skein.yaml"),
    `store: files:${dir}\nagents: ${agents}\nmodels: { providers: { anthropic: ${provider} } }\n`,
  );
  const loaded = await loadConfig({ cwd: home, root: dir, env: { HOME: home } });
  const store = await openFolder({ root: dir, durability: "os" });
  const app = folderApp(store, loaded);
  const deps = {
    ...app,
    runs: pending === undefined ? app.runs : withMethod(app.runs, "pending", pending),
    store: workingSets === undefined ? app.store : { ...store, upkeep: { ...store.upkeep, workingSets } },
    ...more,
  };
  const handlers = readHandlers(deps);
  const as = (user: string | null, ...scopes: TokenScope[]): Call => {
    const principal: Principal = { tokenId: "t", name: "t", scopes, user, expiresAt: null };
    const calls = localCalls<ReadMethod>(handlers, principal);
    return async (method, params) => {
      const payload = JSON.parse(JSON.stringify(await calls.call(method, params)));
      expect(findProblems(methodTable[method].result, payload, 5)).toEqual([]);
      return payload;
    };
  };
  return {
    dir,
    store,
    deps,
    as,
    admin: as(null, "read", "admin"),
    reader: as(null, "read"),
    append: async (scope, sessionId, ...drafts) => {
      const items = drafts.map((draft) => ({ draft }));
      const { entries } = await store.sessions.append(scope, sessionId, items);
      return entries.map(({ id }) => id);
    },
    close: async () => {
      await store.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
