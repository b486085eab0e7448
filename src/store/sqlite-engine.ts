import { SkeinError } from "../core/errors.ts";
import type { DurabilityChoice, Script, ScriptEngine, Whose } from "../core/script.ts";
import { changeOn, runOn } from "../core/script.ts";
import type { Ledger } from "../runs/contract.ts";

/** Runs scripts on SQLite. A transaction excludes all other processes and never yields to other code. */
export class SqliteEngine implements ScriptEngine {
  readonly #ledger: Ledger;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  async read<T>(script: () => Script<T>): Promise<T> {
    return runOn(this.#ledger, script());
  }

  async change<T>(durability: DurabilityChoice, _whose: Whose, script: () => Script<T>): Promise<T> {
    return changeOn(this.#ledger, durability, script());
  }

  async changeEach<T>(
    changes: readonly { script(): Script<T> }[],
  ): Promise<readonly PromiseSettledResult<T>[]> {
    return this.#ledger.exclusively(() => changes.map(({ script }) => this.#settle(script)));
  }

  watch(): () => void {
    return () => undefined;
  }

  version(): number {
    return Number(this.#ledger.sql("PRAGMA data_version").get()?.data_version);
  }

  mark(): string | null {
    return this.#ledger.changeMark();
  }

  /** Only a failure that also ends every process can undo a claim. */
  fenceStep(): number {
    return 1;
  }

  /** A rejected script rolls back only itself. Any other error rolls back the whole transaction. */
  #settle<T>(script: () => Script<T>): PromiseSettledResult<T> {
    try {
      const value = changeOn(this.#ledger, "synced", script());
      return { status: "fulfilled", value };
    } catch (reason) {
      if (!(reason instanceof SkeinError)) throw reason;
      return { status: "rejected", reason };
    }
  }
}
