import { endOfText } from "../../core/text.ts";
import { inLine } from "../../runs/sequels/untrusted.ts";

/** When the progress of a child is told to its parent, and in which words. Pure: it is told the time. */

export const paceMs = 2500;
export const stallMs = 60_000;
const longestSnippet = 220;
const mostGathered = 4000;
const longestName = 120;

/** What is to be told now. */
export type Told = { readonly news: string } | { readonly stalled: true };

/**
 * Gathers what a child says and does. Nothing is told more often than every 2.5 seconds, nor while the last note is not
 * written; a silence of 60 seconds is told once.
 */
export class Progress {
  /** The newest of what nobody was told yet. */
  #gathered = "";
  #heardAt: number;
  #toldAt: number;
  #isStallTold = false;
  #isOutstanding = false;

  constructor(startedAt: number) {
    this.#heardAt = startedAt;
    // The first words wait too: what comes in the same moment is one note.
    this.#toldAt = startedAt;
  }

  /** Something happened that is not told. */
  heard(now: number): void {
    this.#heardAt = now;
    this.#isStallTold = false;
  }

  said(text: string, now: number): void {
    this.heard(now);
    this.#gathered = endOfText(this.#gathered + text, mostGathered);
  }

  called(toolName: string, now: number): void {
    this.said(`\n[tool ${inLine(toolName, longestName)}]\n`, now);
  }

  /** What is to be told at this moment; it is outstanding from now on. `null`: nothing. */
  take(now: number): Told | null {
    if (this.#isOutstanding) return null;
    const news = snippet(this.#gathered);
    if (news !== "" && now >= this.#toldAt + paceMs) {
      this.#gathered = "";
      this.#isOutstanding = true;
      this.#toldAt = now;
      return { news };
    }
    if (this.#isStallTold || now < this.#heardAt + stallMs) return null;
    this.#isStallTold = true;
    this.#isOutstanding = true;
    this.#toldAt = now;
    return { stalled: true };
  }

  /** The last note is written, or nobody will write it. */
  settled(): void {
    this.#isOutstanding = false;
  }

  /** When there may be something to tell; `null`: not before something happens. */
  nextAt(): number | null {
    if (this.#isOutstanding) return null;
    const stall = this.#isStallTold ? [] : [this.#heardAt + stallMs];
    const news = /\S/.test(this.#gathered) ? [this.#toldAt + paceMs] : [];
    const times = [...news, ...stall];
    return times.length === 0 ? null : Math.min(...times);
  }
}

/** The end of what is new, on one line: what it is at now says more than what it was at. */
export function snippet(gathered: string): string {
  const line = gathered.replace(/\s+/g, " ").trim();
  return line.length <= longestSnippet ? line : `…${endOfText(line, longestSnippet - 1)}`;
}

/** The note, of which no part can end where we do not end it. */
export function progressNote(name: string, told: Told): string {
  const who = `[Progress of ${inLine(name, longestName)}]`;
  const seconds = stallMs / 1000;
  return "news" in told
    ? `${who} ${inLine(told.news, longestSnippet)}`
    : `${who} has said nothing for ${seconds} seconds`;
}
