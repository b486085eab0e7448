import type { ServiceMethod } from "../../sessions/services.ts";
import type { FolderDeps, Handlers, HandlersOf, SkeinDeps, TokenDeps } from "../calls/contract.ts";
import { makingHandlers } from "./changing/making.ts";
import { markingHandlers } from "./changing/marking.ts";
import { removingHandlers } from "./changing/removing.ts";
import { changingHandlers } from "./changing.ts";
import type { FolderMethod } from "./families.ts";
import { historyHandlers } from "./reading/history.ts";
import { listHandlers } from "./reading/lists.ts";
import { readingHandlers } from "./reading.ts";
import { talkingHandlers } from "./talking.ts";
import { tokenHandlers } from "./tokens.ts";

/** What a command does that needs no more than a folder, with its tokens, which may be opened when they are wanted. */
export function folderHandlers(deps: FolderDeps & Pick<TokenDeps, "tokens">): HandlersOf<FolderMethod> {
  return { ...readingHandlers(deps), ...changingHandlers(deps) };
}

/** What the library's services call. */
export function serviceHandlers(deps: FolderDeps): HandlersOf<ServiceMethod> {
  return {
    ...listHandlers(deps),
    ...historyHandlers(deps),
    ...makingHandlers(deps),
    ...markingHandlers(deps),
    ...removingHandlers(deps),
  };
}

/** Every method. */
export function allHandlers(deps: SkeinDeps & TokenDeps): Handlers {
  return { ...folderHandlers(deps), ...talkingHandlers(deps), ...tokenHandlers(deps) };
}
