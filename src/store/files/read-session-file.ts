import { readFile } from "node:fs/promises";
import { SkeinError } from "../../core/errors.ts";
import { parsingSession } from "../../core/parse-session.ts";
import { Slices } from "../../core/slices.ts";
import { SessionTree } from "../../core/tree.ts";
import { refuseSpecialFile } from "./disk-files.ts";
import { foreignness, idFromName } from "./repair.ts";

/**
 * Reads one session file whole, in slices. Damage is reported in the tree's diagnostics; a file of another kind is refused.
 * `signal`: where it comes, nobody waits for the tree any more.
 */
export async function readSessionFile(path: string, signal?: AbortSignal): Promise<SessionTree> {
  const slices = new Slices(signal);
  const session = await slices.run(parsingSession(await bytesOf(path)));
  const problem = foreignness(session);
  if (problem !== null) throw new SkeinError("not_a_session", { file: path, problem });
  return slices.run(SessionTree.growing(session, { lostHeader: { id: idFromName(path) } }));
}

async function bytesOf(path: string): Promise<Uint8Array> {
  refuseSpecialFile(path);
  try {
    return await readFile(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") {
      const advice = "Check the path; it is relative to the working directory";
      throw new SkeinError("not_found", { what: "File", name: path, advice }, { cause: error });
    }
    const folder = code === "EISDIR";
    const problem = folder ? "it is a folder" : message;
    if (code === "ERR_FS_FILE_TOO_LARGE") throw new SkeinError("too_large", { what: path }, { cause: error });
    const advice = folder ? "Name one of the .jsonl files in it" : "Check that you may read it";
    throw new SkeinError("unreadable_file", { file: path, problem, advice }, { cause: error });
  }
}
