import { createHash } from "node:crypto";
import { sessionIdProblem } from "../core/names.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import type { SessionTree } from "../core/tree.ts";

/** Whose line format a file has. OpenClaw's transcripts are pi's. */
export type Source = "skein" | "pi" | "claude-code" | "codex";

/** Something of the source that the session does not have: a sentence, how often, and one of them to look for. */
export interface NotKept {
  readonly what: string;
  readonly count: number;
  readonly example?: string;
}

/** A session of another program, as ours. The same bytes give the same session, ids included. */
export interface ImportedSession {
  readonly source: Source;
  /** As the source names it; `tree.header.id` is the same where that can be a session id of ours. */
  readonly sessionId: string;
  readonly cwd: string;
  /** In milliseconds since 1970; 0 when the source does not say. */
  readonly startedAt: number;
  readonly name: string | null;
  readonly tree: SessionTree;
  readonly notKept: readonly NotKept[];
}

export interface ImportOptions {
  /** The file's name without its folder: some sources name the session nowhere else. */
  readonly file?: string;
}

const longestExample = 300;

/** Counts what is left out, by sentence, in the order of first sight. */
export class Losses {
  readonly #bySentence = new Map<string, { count: number; example?: string }>();

  add(what: string, example?: string, count = 1): void {
    const known = this.#bySentence.get(what);
    if (known !== undefined) known.count += count;
    else if (example === undefined) this.#bySentence.set(what, { count });
    else this.#bySentence.set(what, { count, example: cutText(escapeToLine(example), longestExample) });
  }

  list(): NotKept[] {
    return [...this.#bySentence].map(([what, rest]) => ({ what, ...rest }));
  }
}

/** A session id of ours for a source's: itself where that is one, else always the same stand-in. */
export function ownSessionId(sessionId: string): string {
  if (sessionIdProblem(sessionId) === null) return sessionId;
  return standInId(sessionId);
}

/** The same text always gives the same session ID. */
export function standInId(text: string): string {
  return `imported-${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
}

/** A file's name without its last ending. */
export function stemOf(file: string | undefined): string | null {
  const stem = file?.replace(/\.[^.]*$/, "") ?? "";
  return stem === "" ? null : stem;
}
