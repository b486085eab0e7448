// The parts of the commands' `--json` output that tests read.

import type { Result } from "../../src/entry-client.ts";

export type RunListPayload = Result<"runs.list">;
export type RunPayload = Result<"runs.get">;
export type OutboxListPayload = Result<"outbox.list">;
export type UserListPayload = Result<"users.list">;
export type ImportPayload = Result<"sessions.import">;
export type WireEntry = Result<"sessions.entries">["entries"][number];

export interface DoctorPayload {
  readonly findings: readonly {
    readonly code: string;
    readonly severity: string;
    readonly message: string;
    readonly [field: string]: unknown;
  }[];
  readonly configuration: { readonly file: string | null };
  readonly maintenance?: Result<"maintenance.run">;
}

export interface BackupPayload {
  readonly files: number;
  readonly bytes: number;
  readonly configuration?: string;
  readonly leftOut: readonly { readonly what: string; readonly instead: string }[];
}
