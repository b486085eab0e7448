import type { ServiceMethod } from "../../sessions/app.ts";
import { tokenHandlers, upkeepHandlers } from "./admin.ts";
import { chatHandlers, compactHandlers } from "./chat.ts";
import { liveHandlers } from "./chat-live.ts";
import { directoryHandlers } from "./directory.ts";
import type { FolderApp, HandledMethod, Handlers, HandlersOf, MethodApp } from "./dispatch.ts";
import { abortingHandlers, outboxHandlers, runHandlers } from "./runs.ts";
import { scheduleHandlers } from "./schedules.ts";
import { importingHandlers, makingHandlers, markingHandlers, removingHandlers } from "./sessions-change.ts";
import { contextHandlers } from "./sessions-context.ts";
import { contentHandlers } from "./sessions-export.ts";
import { familyHandlers, listHandlers, usageHandlers } from "./sessions-list.ts";
import { entriesHandlers, historyHandlers } from "./sessions-read.ts";

/**
 * The handlers, grouped by what they depend on, so that a command that only reads does not open more than the folder.
 */

export type ReadMethod = keyof ReturnType<typeof readHandlers>;
export type ChangeMethod = keyof ReturnType<typeof changeHandlers>;
export type TokenMethod = keyof ReturnType<typeof tokenHandlers>;
/** Methods that need only the folder. */
export type FolderMethod = ReadMethod | ChangeMethod;
/** Methods that need agents, runs or tools. */
export type SkeinMethod = Exclude<HandledMethod, FolderMethod | TokenMethod>;

export function readHandlers(app: FolderApp) {
  return {
    ...listHandlers(app),
    ...entriesHandlers(app),
    ...historyHandlers(app),
    ...liveHandlers(app),
    ...usageHandlers(app),
    ...contextHandlers(app),
    ...contentHandlers(app),
    ...familyHandlers(app),
  };
}

/** `app` is passed on without being copied, because its tokens are opened on first use. */
export function changeHandlers(app: FolderApp & Pick<MethodApp, "tokens">) {
  return { ...sessionChangeHandlers(app), ...importingHandlers(app), ...upkeepHandlers(app) };
}

function sessionChangeHandlers(app: FolderApp) {
  return { ...makingHandlers(app), ...markingHandlers(app), ...removingHandlers(app) };
}

export function skeinHandlers(app: MethodApp): HandlersOf<SkeinMethod> {
  return {
    ...chatHandlers(app),
    ...abortingHandlers(app),
    ...runHandlers(app),
    ...outboxHandlers(app),
    ...scheduleHandlers(app),
    ...directoryHandlers(app),
    ...compactHandlers(app),
  };
}

export function folderHandlers(app: FolderApp & Pick<MethodApp, "tokens">): HandlersOf<FolderMethod> {
  return { ...readHandlers(app), ...changeHandlers(app) };
}

/** The methods that the library's services call. */
export function serviceHandlers(app: FolderApp): HandlersOf<ServiceMethod> {
  return { ...listHandlers(app), ...historyHandlers(app), ...sessionChangeHandlers(app) };
}

export function allHandlers(app: MethodApp): Handlers {
  return { ...folderHandlers(app), ...skeinHandlers(app), ...tokenHandlers(app) };
}
