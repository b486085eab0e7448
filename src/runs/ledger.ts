import { SkeinError } from "../core/errors.ts";

/** What an embedded work store asks of a database. `Database` of the files store is one. */
export interface Ledger {
  /** A query, prepared once for each text. */
  sql(text: string): {
    all(...values: LedgerValue[]): Record<string, unknown>[];
    get(...values: LedgerValue[]): Record<string, unknown> | undefined;
  };
  /** A change. */
  run(text: string, ...values: LedgerValue[]): { readonly changes: number | bigint };
  /** All of it or nothing, alone among all processes. Inside another one, a part of it. */
  exclusively<T>(act: () => T): T;
  /** May be lost in a power cut, not by the death of a process; spares the wait for the disk. */
  unsynced(act: () => unknown): void;
  /** Another text once anybody has changed something, by whatever connection; `null` within a transaction. */
  changeMark(): string | null;
}

export type LedgerValue = string | number | null;

/** A part of a ledger that has a version among the facts, so that it goes forward without the rest. */
export interface LedgerPart {
  /** The name of the fact. */
  readonly fact: string;
  /** What its tables are about, as in "the version 3 of its runs". */
  readonly about: string;
  /** The statements that lead from each version to the next. */
  readonly steps: readonly (readonly string[])[];
}

/** Brings the tables of a part forward, all steps or none. Those of a newer Skein are refused. */
export function migratePart(ledger: Ledger, { fact, about, steps }: LedgerPart): void {
  const readVersion = () =>
    Number(ledger.sql("SELECT value FROM facts WHERE name = ?").get(fact)?.value ?? 0);
  if (readVersion() === steps.length) return;
  ledger.exclusively(() => {
    const version = readVersion();
    if (version > steps.length) {
      const problem = `the version ${version} of its ${about} is newer than ${steps.length}, the last that this Skein knows`;
      throw new SkeinError("read_only", { name: "work.db", problem });
    }
    for (const text of steps.slice(version).flat()) ledger.run(text);
    ledger.run("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", fact, String(steps.length));
  });
}
