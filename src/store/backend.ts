import type { Clock } from "../core/clock.ts";
import type { IdSource } from "../core/ids.ts";
import type { ScriptEngine } from "../core/script.ts";
import type { SharedDatabase, WorkingStore } from "./work.ts";

/** A database that any number of machines share. Everything that a process keeps is there. */
export interface Backend {
  /** Opens the sessions and their runs. Several stores can be open at the same time, for example during a reload. */
  openStore(options: { readonly clock: Clock; readonly newId: IdSource }): WorkingStore;
  /** Runs scripts on the gateways' own tables. */
  readonly engine: ScriptEngine;
  readonly shared: SharedDatabase;
  /** Returns the reasons why this process should not receive work now, as sentences. */
  findProblems(): Promise<readonly string[]>;
  /** Close everything that uses the back end first. */
  close(): Promise<void>;
}
