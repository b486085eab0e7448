import { SkeinError } from "../../core/errors.ts";
import { stringifyJson } from "../../core/json.ts";
import { parsingSession } from "../../core/parse-session.ts";
import { present } from "../../core/present.ts";
import type { Steps } from "../../core/slices.ts";
import { Slices } from "../../core/slices.ts";
import { SessionTree } from "../../core/tree.ts";
import { exportJsonl } from "../../interchange/export-jsonl.ts";
import { noBlobs } from "../../interchange/export-view.ts";
import { wireLimits } from "../../protocol/frames.ts";
import { exportPieces } from "../../sessions/export-session.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { scopeOfSession } from "../../store/rules.ts";
import { loadBlobs, readTree } from "../../store/session-trees.ts";
import type { Mask } from "../auth/mask.ts";
import { maskFor } from "../auth/mask.ts";
import type { FolderApp, HandlersOf } from "./dispatch.ts";
import { findSession } from "./session-lookup.ts";

const longestPiece = 8 * 1024 * 1024;

/** Methods that export sessions and read blobs. */
export function contentHandlers(app: FolderApp): HandlersOf<"sessions.export" | "blobs.get"> {
  return {
    "sessions.export": async (params, call) => {
      const { format = "jsonl", all = false } = params;
      const session = await findSession(app, call, params);
      const slices = new Slices(call.signal);
      const tree = await readWholeTree(app, session, call.signal);
      const mask = maskFor(app, call);
      const shown = mask.isOff ? tree : await maskedTree(tree, session, { app, mask, format, slices });
      const blobs = mask.isOff ? await blobsOf(app, session, tree) : noBlobs;
      const pieces = exportPieces(shown, blobs, { format, all });
      const content = await slices.run(withinFrame(pieces));
      return { key: session.key, sessionId: session.sessionId, format, content };
    },
    "blobs.get": async (params, call) => {
      const { sha256, offset = 0, length = longestPiece } = params;
      const session = await findSession(app, call, params);
      const kept = await app.store.blobs.get(scopeOfSession(session), sha256);
      if (kept === null) {
        const advice = "A session's blobs are named in its entries";
        throw new SkeinError("not_found", { what: "Blob", name: sha256, advice });
      }
      const bytes = await maskedBytes(kept, maskFor(app, call), new Slices(call.signal));
      const end = Math.min(bytes.byteLength, offset + length);
      return present({
        sha256,
        bytes: bytes.byteLength,
        offset,
        data: Buffer.from(bytes.subarray(offset, end)).toString("base64"),
        nextOffset: end < bytes.byteLength ? end : null,
      });
    },
  };
}

/**
 * Reads the whole tree of a session in chunks. For a session stored in files, the tree includes reports of any damage.
 */
export function readWholeTree(
  { store }: Pick<FolderApp, "store">,
  session: SessionRecord,
  signal?: AbortSignal,
): Promise<SessionTree> {
  return store.upkeep?.readLog(session, signal) ?? readTree(store, session, signal);
}

/** Returns the blobs that a session's entries refer to. */
async function blobsOf({ store }: FolderApp, session: SessionRecord, tree: SessionTree) {
  return store.upkeep?.blobReader(session) ?? loadBlobs(store, session, tree);
}

/**
 * Masks the whole text rather than a range, because a range could begin within a secret. Binary data is left unchanged.
 */
async function maskedBytes(bytes: Uint8Array, mask: Mask, slices: Slices): Promise<Uint8Array> {
  const text = mask.isOff ? null : textIn(bytes);
  return text === null ? bytes : Buffer.from(await slices.run(mask.longText(text)));
}

function textIn(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

interface Masking {
  readonly app: FolderApp;
  readonly mask: Mask;
  readonly format: string;
  readonly slices: Slices;
}

/** Returns the same session with every line masked, including its blobs. */
async function maskedTree(
  tree: SessionTree,
  session: SessionRecord,
  { app, mask, format, slices }: Masking,
): Promise<SessionTree> {
  const lines = masking(exportJsonl(tree, await blobsOf(app, session, tree)), mask, format === "jsonl");
  const bytes = Buffer.concat(await slices.run(lines));
  return slices.run(SessionTree.growing(await slices.run(parsingSession(bytes))));
}

/** If `isAll` is set, the lines themselves are the export, so `too_large` is thrown if they exceed the frame size. */
function* masking(lines: Iterable<string>, mask: Mask, isAll: boolean): Steps<Buffer[]> {
  const masked: Buffer[] = [];
  let bytes = 0;
  for (const line of lines) {
    const safe = Buffer.from(`${stringifyJson(mask.value(JSON.parse(line)))}\n`);
    bytes += safe.length;
    if (isAll && bytes > contentBytes) throw tooLarge();
    masked.push(safe);
    yield line.length;
  }
  return masked;
}

/** Joins the pieces. Throws `too_large` if they exceed the frame size. */
function* withinFrame(pieces: Iterable<string>): Steps<string> {
  const taken: string[] = [];
  let bytes = 0;
  for (const piece of pieces) {
    // Measured as an encoded JSON string, which is longer than the text.
    bytes += Buffer.byteLength(JSON.stringify(piece)) - 2;
    if (bytes > contentBytes) throw tooLarge();
    taken.push(piece);
    yield piece.length;
  }
  return taken.join("");
}

function tooLarge(): SkeinError {
  return new SkeinError("too_large", { what: "The export" });
}

/** The space reserved for the rest of the frame. */
const around = 64 * 1024;

/** The number of content bytes that fit in a frame. */
export const contentBytes = wireLimits.frameBytes - around;
