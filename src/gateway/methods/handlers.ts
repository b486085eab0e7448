import type { ServiceMethod } from "../../sessions/app.ts";
import type { UpkeepDeps } from "./admin.ts";
import { tokenHandlers, upkeepHandlers } from "./admin.ts";
import { chatHandlers, compactHandlers } from "./chat.ts";
import { directoryHandlers } from "./directory.ts";
import type { FolderDeps, HandledMethod, Handlers, HandlersOf, SkeinDeps, TokenDeps } from "./dispatch.ts";
import { abortingHandlers, outboxHandlers, runHandlers } from "./runs.ts";
import { importingHandlers, makingHandlers, markingHandlers, removingHandlers } from "./sessions-change.ts";
import { contextHandlers } from "./sessions-context.ts";
import { contentHandlers } from "./sessions-export.ts";
import { listHandlers, usageHandlers } from "./sessions-list.ts";
import { entriesHandlers, historyHandlers } from "./sessions-read.ts";

/** The handlers by what they need: a command that only reads opens no more than the folder. */

export type ReadMethod = keyof ReturnType<typeof readHandlers>;
export type ChangeMethod = keyof ReturnType<typeof changeHandlers>;
export type TokenMethod = keyof ReturnType<typeof tokenHandlers>;
/** Methods that need no more than the folder. */
export type FolderMethod = ReadMethod | ChangeMethod;
/** Methods that need agents, runs or tools. */
export type SkeinMethod = Exclude<HandledMethod, FolderMethod | TokenMethod>;

export function readHandlers(deps: FolderDeps) {
  return {
    ...listHandlers(deps),
    ...entriesHandlers(deps),
    ...historyHandlers(deps),
    ...usageHandlers(deps),
    ...contextHandlers(deps),
    ...contentHandlers(deps),
  };
}

/** `deps` is passed on as it is, because its tokens may be opened on first use. */
export function changeHandlers(deps: UpkeepDeps) {
  return { ...sessionChangeHandlers(deps), ...importingHandlers(deps), ...upkeepHandlers(deps) };
}

function sessionChangeHandlers(deps: FolderDeps) {
  return { ...makingHandlers(deps), ...markingHandlers(deps), ...removingHandlers(deps) };
}

export function skeinHandlers(deps: SkeinDeps): HandlersOf<SkeinMethod> {
  return {
    ...chatHandlers(deps),
    ...abortingHandlers(deps),
    ...runHandlers(deps),
    ...outboxHandlers(deps),
    ...directoryHandlers(deps),
    ...compactHandlers(deps),
  };
}

export function folderHandlers(deps: UpkeepDeps): HandlersOf<FolderMethod> {
  return { ...readHandlers(deps), ...changeHandlers(deps) };
}

/** The methods that the library's services call. */
export function serviceHandlers(deps: FolderDeps): HandlersOf<ServiceMethod> {
  return { ...listHandlers(deps), ...historyHandlers(deps), ...sessionChangeHandlers(deps) };
}

export function allHandlers(deps: SkeinDeps & TokenDeps): Handlers {
  return { ...folderHandlers(deps), ...skeinHandlers(deps), ...tokenHandlers(deps) };
}
