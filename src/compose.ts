/** The composition root: the only file that knows concrete stores and runtimes. */
export { repairSessionFile } from "./store/files/lone-file.ts";
export { readSessionFile } from "./store/files/read-session-file.ts";
