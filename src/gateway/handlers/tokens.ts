import type { HandlersOf, TokenDeps } from "../calls/contract.ts";
import type { TokenMethod } from "./families.ts";

export function tokenHandlers(_deps: TokenDeps): HandlersOf<TokenMethod> {
  throw new Error("in the making");
}
