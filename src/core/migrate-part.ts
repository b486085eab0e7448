import { SkeinError } from "./errors.ts";

/** The part of a `Ledger` that migrations use. */
interface VersionedLedger {
  sql(text: string): { get(...values: string[]): Record<string, unknown> | undefined };
  run(text: string, ...values: string[]): unknown;
  exclusively<T>(act: () => T): T;
}

/** A part of the ledger that has its own version in `facts` and is migrated independently. */
export interface LedgerPart {
  /** The name of the fact that stores its version. */
  readonly fact: string;
  /** The contents of its tables, as in "version 3 of its runs". */
  readonly about: string;
  /** The statements that migrate from each version to the next. */
  readonly steps: readonly (readonly string[])[];
}

/** Migrates a part's tables. Applies either all steps or none. Throws for tables from a newer version of Skein. */
export function migratePart(ledger: VersionedLedger, { fact, about, steps }: LedgerPart): void {
  const readVersion = () =>
    Number(ledger.sql("SELECT value FROM facts WHERE name = ?").get(fact)?.value ?? 0);
  if (readVersion() === steps.length) return;
  ledger.exclusively(() => {
    const version = readVersion();
    if (version > steps.length) {
      const problem = `version ${version} of its ${about} is newer than ${steps.length}, the latest that this version of Skein supports`;
      throw new SkeinError("read_only", { name: "work.db", problem });
    }
    for (const text of steps.slice(version).flat()) ledger.run(text);
    ledger.run("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", fact, String(steps.length));
  });
}
