/** The composition root: the only file that knows concrete stores and runtimes. */
export { readSessionFile } from "./store/files/read-session-file.ts";
