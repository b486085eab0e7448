/** What reading found odd. Reported with the result, so that nothing is dropped in silence. */
export type DiagnosticCode =
  | "corrupt_line"
  | "foreign_line"
  | "header_missing"
  | "extra_header"
  | "late_header"
  | "newer_version"
  | "migrated"
  | "normalized_entry"
  | "invalid_entry"
  | "duplicate_id"
  | "conflicting_id"
  | "bridged_parent"
  | "missing_parent"
  | "cycle_cut"
  | "unknown_leaf_target"
  | "unknown_kept_entry"
  | "bridged_kept_entry"
  | "taken_in"
  | "working_set_behind"
  | "lock_kept"
  | "not_cut_back";

/** One finding: a code for programs, a note for people, and where. */
export interface Diagnostic {
  readonly code: DiagnosticCode;
  readonly note: string;
  /** Counted from 1. */
  readonly line?: number;
  readonly entryId?: string;
}
