import { SkeinError } from "./errors.ts";

/** What a migration asks of the database: a `Ledger` is one. */
interface VersionedLedger {
  sql(text: string): { get(...values: string[]): Record<string, unknown> | undefined };
  run(text: string, ...values: string[]): unknown;
  exclusively<T>(act: () => T): T;
}

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
export function migratePart(ledger: VersionedLedger, { fact, about, steps }: LedgerPart): void {
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
