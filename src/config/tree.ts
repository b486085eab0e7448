import type { Written } from "./settings/setting.ts";

/** The configuration as written, before it is validated. */

/** Where a value was written. */
export type Origin =
  | { readonly from: "file"; readonly file: string; readonly line: number; readonly column: number }
  /** The object passed to `createSkein`. */
  | { readonly from: "code" }
  /** `file` is the `.env` file that sets the variable, or `null` for the real environment. */
  | { readonly from: "environment"; readonly variable: string; readonly file: string | null };

/** Where a configuration value comes from. */
export type Source =
  | { readonly from: "default" }
  | { readonly from: "option"; readonly option: string }
  /** `secret` is `true` if the value came from a variable and must not be shown. */
  | (Origin & { readonly secret: boolean });

export type WrittenNode = WrittenMap | WrittenLeaf | WrittenList | ReportedNode;

export interface WrittenMap {
  readonly is: "map";
  readonly at: Origin;
  readonly entries: readonly WrittenEntry[];
}

export interface WrittenEntry {
  readonly key: string;
  readonly keyAt: Origin;
  readonly value: WrittenNode;
}

export interface WrittenLeaf {
  readonly is: "leaf";
  readonly at: Origin;
  /**
   * The possible readings of the value. Text from the environment can also represent a number. The first valid reading
   * is used.
   */
  readonly readings: readonly Written[];
  /** The variables that were inserted into the value. */
  readonly variables: readonly string[];
}

export interface WrittenList {
  readonly is: "list";
  readonly at: Origin;
  readonly items: readonly WrittenItem[];
}

/** A list item. `misplaced` means that it is not allowed in a list and has not been reported yet. */
export type WrittenItem =
  | WrittenLeaf
  | WrittenMap
  | ReportedNode
  | { readonly is: "misplaced"; readonly at: Origin; readonly found: string };

/** A node whose problem has already been reported. */
export interface ReportedNode {
  readonly is: "reported";
  readonly at: Origin;
}

/** For example `session.maintenance.mode`, `agents.main`, `session.reset.byChannel["a.b"]`. */
export function pathText(path: readonly string[]): string {
  return path
    .map((key) => (/^[A-Za-z0-9_$-]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`))
    .join("")
    .replace(/^\./, "");
}

export function originText(origin: Origin): string {
  if (origin.from === "code") return "createSkein({ config })";
  if (origin.from === "file") return `${origin.file}:${origin.line}:${origin.column}`;
  return origin.file === null ? origin.variable : `${origin.variable} in ${origin.file}`;
}
