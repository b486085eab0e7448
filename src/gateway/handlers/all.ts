import type { FolderDeps, Handlers, HandlersOf, SkeinDeps, TokenDeps } from "../calls/contract.ts";
import { changingHandlers } from "./changing.ts";
import type { FolderMethod } from "./families.ts";
import { readingHandlers } from "./reading.ts";
import { talkingHandlers } from "./talking.ts";
import { tokenHandlers } from "./tokens.ts";

/** What a command does that needs no more than a folder, with its tokens, which may be opened when they are wanted. */
export function folderHandlers(deps: FolderDeps & Pick<TokenDeps, "tokens">): HandlersOf<FolderMethod> {
  return { ...readingHandlers(deps), ...changingHandlers(deps) };
}

/** Every method. */
export function allHandlers(deps: SkeinDeps & TokenDeps): Handlers {
  return { ...folderHandlers(deps), ...talkingHandlers(deps), ...tokenHandlers(deps) };
}
