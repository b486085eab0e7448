import type { FolderDeps, HandlersOf } from "../calls/contract.ts";
import type { ReadingMethod } from "./families.ts";

export function readingHandlers(_deps: FolderDeps): HandlersOf<ReadingMethod> {
  throw new Error("in the making");
}
