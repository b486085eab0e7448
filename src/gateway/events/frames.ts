import { wireLimits } from "../../protocol/frames.ts";
import type { KeptEvent } from "./kept-event.ts";
import type { ReaderKind } from "./readers.ts";
import { readerKinds } from "./readers.ts";

export interface FramesOptions {
  /** How much is remembered, in characters. */
  readonly size: number;
  readonly largest?: number;
  /** Told of an event that is no JSON. */
  report(error: unknown): void;
}

/** Frames, made once for each kind of reader and remembered for a while: many who read the same cost as much as one. */
export class Frames {
  readonly #options: FramesOptions;
  /** The ones made last at the end. */
  readonly #made = new Map<string, string | null>();
  #size = 0;

  constructor(options: FramesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /** `null`: it cannot be sent; it was forgotten, is no JSON, or is larger than any frame may be. */
  of(kept: KeptEvent, kind: ReaderKind): string | null {
    if (kept.isForgotten) return null;
    const name = nameOf(kept, kind);
    const there = this.#made.get(name);
    if (there !== undefined) return there;
    const frame = this.#make(kept, kind);
    this.#made.set(name, frame);
    this.#size += costOf(frame);
    for (const oldest of this.#made.keys()) {
      // The last one stays, however large: others want it at this moment.
      if (this.#size <= this.#options.size || this.#made.size === 1) break;
      this.#drop(oldest);
    }
    return frame;
  }

  forget(kept: KeptEvent): void {
    for (const kind of readerKinds) this.#drop(nameOf(kept, kind));
  }

  #make(kept: KeptEvent, kind: ReaderKind): string | null {
    const { report, largest = wireLimits.frameBytes } = this.#options;
    try {
      const frame = kept.frame(kind);
      return frame.length > largest / 3 && Buffer.byteLength(frame) > largest ? null : frame;
    } catch (error) {
      report(error);
      return null;
    }
  }

  #drop(name: string): void {
    const frame = this.#made.get(name);
    if (frame === undefined) return;
    this.#made.delete(name);
    this.#size -= costOf(frame);
  }
}

function nameOf({ seq }: KeptEvent, { index }: ReaderKind): string {
  return `${seq}.${index}`;
}

function costOf(frame: string | null): number {
  return 64 + (frame?.length ?? 0);
}
