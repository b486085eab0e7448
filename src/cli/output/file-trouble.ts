import { SkeinError } from "../../core/errors.ts";

type Trouble = readonly [code: "write_failed" | "unreadable_file", problem: string, advice: string];

const otherFolder = "name another folder with --dir";
const notAllowed: Trouble = [
  "write_failed",
  "this user may not",
  "Have the right given to you, or name a folder of your own with --dir",
];

/** What the system refuses for reasons of the user's own machine. */
const troubles: Readonly<Record<string, Trouble>> = {
  EACCES: notAllowed,
  EPERM: notAllowed,
  EROFS: ["write_failed", "it can only be read", `Make it writable, or ${otherFolder}`],
  ENOSPC: ["write_failed", "the disk is full", "Make room, and try again"],
  EDQUOT: ["write_failed", "the quota is used up", "Make room, and try again"],
  ENOTDIR: ["unreadable_file", "a part of its path is no folder", `Correct the path, or ${otherFolder}`],
  EEXIST: ["write_failed", "something else has that name", `Take it away, or ${otherFolder}`],
  EMFILE: ["unreadable_file", "too many files are open", "Raise the limit (ulimit -n), and try again"],
};

/** An error of the file system as one for people; `null`: it is none that they can mend. */
export function fileTrouble(error: unknown): SkeinError | null {
  if (!(error instanceof Error)) return null;
  const { code = "", path } = error as NodeJS.ErrnoException;
  const trouble = troubles[code];
  if (trouble === undefined || path === undefined) return null;
  const [as, problem, advice] = trouble;
  return new SkeinError(as, { file: path, problem: `${problem} (${code})`, advice }, { cause: error });
}
