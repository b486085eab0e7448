import type { HandlersOf, SkeinDeps } from "../calls/contract.ts";
import type { TalkingMethod } from "./families.ts";

export function talkingHandlers(_deps: SkeinDeps): HandlersOf<TalkingMethod> {
  throw new Error("in the making");
}
