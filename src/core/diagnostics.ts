/** A problem found while reading, reported along with the result. */
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

/** A problem, with a code for programs, a note for people, and its location. */
export interface Diagnostic {
  readonly code: DiagnosticCode;
  readonly note: string;
  /** Counted from 1. */
  readonly line?: number;
  readonly entryId?: string;
}
