import { SkeinError } from "./errors.ts";

/** The part of a `Ledger` that a migration uses. */
interface VersionedLedger {
  sql(text: string): { get(...values: string[]): Record<string, unknown> | undefined };
  run(text: string, ...values: string[]): unknown;
  exclusively<T>(act: () => T): T;
}

/** A part of the ledger with its own version in `facts`, so that it is migrated independently. */
export interface LedgerPart {
  /** The name of its version in `facts`. */
  readonly fact: string;
  /** The contents of its tables, as in "the version 3 of its runs". */
  readonly about: string;
  /** The statements that migrate each version to the next. */
  readonly steps: readonly (readonly string[])[];
}

/** Migrates the tables of a part, all steps or none. Throws for tables of a newer Skein. */
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
