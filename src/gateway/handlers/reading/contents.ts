import { SkeinError } from "../../../core/errors.ts";
import { stringifyJson } from "../../../core/json.ts";
import { parseSession } from "../../../core/parse-session.ts";
import { present } from "../../../core/present.ts";
import { SessionTree } from "../../../core/tree.ts";
import { exportJsonl } from "../../../interchange/export-jsonl.ts";
import { noBlobs } from "../../../interchange/inline-blobs.ts";
import { exportPieces } from "../../../sessions/export-session.ts";
import type { SessionRecord } from "../../../store/contract.ts";
import type { FolderDeps, HandlersOf } from "../../calls/contract.ts";
import type { Mask } from "../../masking/mask.ts";
import { maskFor } from "../../masking/mask.ts";
import { findSession } from "../shared/session-of.ts";
import { contentBytes } from "./frame-room.ts";

const longestPiece = 8 * 1024 * 1024;

/** Sessions as texts, and the large contents that they name. */
export function contentHandlers(deps: FolderDeps): HandlersOf<"sessions.export" | "blobs.get"> {
  return {
    "sessions.export": async (params, call) => {
      const { format = "jsonl", all = false } = params;
      const session = await findSession(deps, call, params);
      const tree = await deps.readTree(session);
      const mask = maskFor(deps, call);
      const pieces = mask.isOff
        ? exportPieces(tree, deps.blobs(session), { format, all })
        : exportPieces(maskedTree(tree, session, deps, mask), noBlobs, { format, all });
      return {
        key: session.key,
        sessionId: session.sessionId,
        format,
        content: withinFrame(pieces, call.signal),
      };
    },
    "blobs.get": async (params, call) => {
      const { sha256, offset = 0, length = longestPiece } = params;
      const session = await findSession(deps, call, params);
      const kept = deps.blobs(session)(sha256);
      if (kept === null) {
        const advice = "Entries name the blobs of their session";
        throw new SkeinError("not_found", { what: "Blob", name: sha256, advice });
      }
      const bytes = maskedBytes(kept, maskFor(deps, call));
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

/** A text is masked whole, before a piece is cut out of it; what is no text stays as it is. */
function maskedBytes(bytes: Uint8Array, mask: Mask): Uint8Array {
  const text = mask.isOff ? null : textIn(bytes);
  return text === null ? bytes : Buffer.from(mask.text(text));
}

function textIn(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** The same session with every line masked, blobs among them. */
function maskedTree(tree: SessionTree, session: SessionRecord, deps: FolderDeps, mask: Mask): SessionTree {
  const lines = [];
  for (const line of exportJsonl(tree, deps.blobs(session))) {
    lines.push(`${stringifyJson(mask.value(JSON.parse(line)))}\n`);
  }
  return SessionTree.from(parseSession(Buffer.from(lines.join(""))));
}

/** The pieces together; `too_large` as soon as they would not fit into a frame. */
function withinFrame(pieces: Iterable<string>, signal: AbortSignal): string {
  const taken: string[] = [];
  let bytes = 0;
  for (const piece of pieces) {
    signal.throwIfAborted();
    // As a string in JSON, which is longer than the text.
    bytes += Buffer.byteLength(JSON.stringify(piece)) - 2;
    if (bytes > contentBytes) throw new SkeinError("too_large", { what: "The export" });
    taken.push(piece);
  }
  return taken.join("");
}
