import { readAgentId } from "../../core/names.ts";
import { planOpenclawFolder } from "../../interchange/openclaw-folder.ts";
import type { FailedRow } from "../../protocol/interchange.ts";
import type { ImportWish } from "../import-session.ts";

/** OpenClaw's list of the sessions of one agent, beside their transcripts. */
export const listName = "sessions.json";

export interface ListedSessions {
  /** Whose they are: as the folder says, else as was given. A transcript beside the list is that agent's too. */
  readonly agentId: string;
  readonly rows: readonly {
    /** The transcript, a name within the folder of the list. */
    readonly name: string;
    readonly wish: ImportWish;
  }[];
  readonly failed: readonly FailedRow[];
}

/** What the list in a folder says of the transcripts there. Throws where it is no list. */
export function readList(
  { file, folder }: { readonly file: string; readonly folder: string },
  content: Uint8Array,
  defaultAgent: string,
): ListedSessions {
  const inPath = /(?:^|[\\/])agents[\\/]([^\\/]+)[\\/]sessions$/.exec(folder)?.[1] ?? "";
  const agentId = readAgentId(inPath) ?? defaultAgent;
  const { sessions, refused } = planOpenclawFolder(content, { agentId });
  return {
    agentId,
    rows: sessions.map(({ key, keyNote, sessionId, file: name, meta, notKept }) => {
      const notes = keyNote === null ? [] : [{ what: keyNote, count: 1 }];
      return { name, wish: { agentId, key, sessionId, meta, notKept: [...notes, ...notKept] } };
    }),
    failed: refused.map(({ sourceKey, problem }) => ({
      file,
      code: "invalid_entry",
      error: `The row "${sourceKey}" was left out: ${problem}.`,
    })),
  };
}
