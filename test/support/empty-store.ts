import type { Backend } from "../../src/entry-postgres.ts";
import type { SkeinOptions } from "../../src/index.ts";

/** Opens databases instead of folders. */
export interface TestBackends {
  /** Connects to the database that takes the place of a folder. Without a folder, the database is a new one. */
  open(dir: string | undefined): Promise<Backend>;
  /** Returns the address of the database that takes the place of a folder. */
  addressOf(dir: string): Promise<string>;
}

let backends: TestBackends | null = null;

/** Makes `emptyStore` and `storeEnv` use databases. */
export function storeIn(others: TestBackends | null): void {
  backends = others;
}

/** Whether this file runs on databases. Tests of files in a folder are then skipped. */
export function usesDatabases(): boolean {
  return backends !== null;
}

/** Returns the options for a store that only users of the same `dir` share: in memory, in a folder or in a database. */
export async function emptyStore({
  dir,
}: Partial<SkeinOptions>): Promise<Pick<SkeinOptions, "memory" | "backend">> {
  if (backends !== null) return { backend: await backends.open(dir) };
  return dir === undefined ? { memory: true } : {};
}

/** Returns the environment for a process that stores its sessions in `dir`, or in the database that takes its place. */
export async function storeEnv(dir: string): Promise<Readonly<Record<string, string>>> {
  return backends === null ? {} : { SKEIN_STORE: await backends.addressOf(dir) };
}
