import type { FolderDeps, HandlersOf } from "../calls/contract.ts";
import type { ChangingMethod } from "./families.ts";

export function changingHandlers(_deps: FolderDeps): HandlersOf<ChangingMethod> {
  throw new Error("in the making");
}
