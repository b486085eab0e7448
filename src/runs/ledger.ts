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
