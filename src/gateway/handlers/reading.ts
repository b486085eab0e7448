import type { FolderDeps, HandlersOf } from "../calls/contract.ts";
import type { ReadingMethod } from "./families.ts";
import { contentHandlers } from "./reading/contents.ts";
import { contextHandlers } from "./reading/context.ts";
import { entriesHandlers } from "./reading/entries.ts";
import { historyHandlers } from "./reading/history.ts";
import { listHandlers } from "./reading/lists.ts";
import { usageHandlers } from "./reading/usage.ts";

/** Methods that change nothing. */
export function readingHandlers(deps: FolderDeps): HandlersOf<ReadingMethod> {
  return {
    ...listHandlers(deps),
    ...entriesHandlers(deps),
    ...historyHandlers(deps),
    ...usageHandlers(deps),
    ...contextHandlers(deps),
    ...contentHandlers(deps),
  };
}
