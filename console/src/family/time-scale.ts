/** Maps time to pixels. Idle time is folded into a mark of fixed width. */

export interface Interval {
  readonly from: number;
  readonly to: number;
}

/** A period of activity, or the idle time between two of them. */
export interface Stretch extends Interval {
  readonly isFold: boolean;
  /** The amount of activity. A busy second gets more space than a quiet one. */
  readonly count: number;
}

interface Piece extends Stretch {
  readonly x: number;
  readonly width: number;
}

interface Tick {
  readonly x: number;
  readonly text: string;
  /** Whether this is the first tick, at the beginning or after a fold. */
  readonly isStart: boolean;
}

export const foldWidth = 44;
const padding = 12;
/** For a period on an earlier day, the label contains the date and the time and is about 95 pixels wide. */
const minStretchWidth = 96;
const widthPerMark = 9;
const maxCrowdWidth = 360;
const minFoldMs = 1500;
const minTickWidth = 92;
const digitWidth = 6;

/** Splits time into active periods and folds. Idle time is folded if it is long compared with the active time. */
export function splitTime(busy: readonly Interval[], unfolded: ReadonlySet<number>): readonly Stretch[] {
  const sorted = [...busy].sort((a, b) => a.from - b.from);
  const merged: { from: number; to: number; count: number }[] = [];
  for (const { from, to } of sorted) {
    const last = merged.at(-1);
    if (last !== undefined && from - last.to < minFoldMs) {
      last.to = Math.max(last.to, to);
      last.count += 1;
    } else {
      merged.push({ from, to, count: 1 });
    }
  }
  const busyMs = merged.reduce((sum, { from, to }) => sum + to - from, 0);
  // In powers of two, so that folds do not open and close as time passes.
  const threshold = Math.max(minFoldMs, 2 ** Math.round(Math.log2(Math.max(1, busyMs * 0.12))));
  const stretches: Stretch[] = [];
  for (const { from, to, count } of merged) {
    const last = stretches.at(-1);
    if (last === undefined) {
      stretches.push({ from, to, count, isFold: false });
    } else if (from - last.to < threshold || unfolded.has(last.to)) {
      stretches[stretches.length - 1] = { ...last, to, count: last.count + count };
    } else {
      stretches.push({ from: last.to, to: from, count: 0, isFold: true }, { from, to, count, isFold: false });
    }
  }
  return stretches;
}

export class TimeScale {
  readonly pieces: readonly Piece[];
  readonly width: number;

  /**
   * At zoom 1, everything fits in `width` unless there are too many periods to distinguish. Below 1, periods and folds
   * are narrower than that.
   */
  constructor(stretches: readonly Stretch[], width: number, zoom: number) {
    const fit = fitInto(stretches, width);
    let x = 0;
    this.pieces = stretches.map((stretch) => {
      const piece = {
        ...stretch,
        x,
        width: widthOf(stretch, fit) * (stretch.isFold ? Math.min(1, zoom) : zoom),
      };
      x += piece.width;
      return piece;
    });
    this.width = x;
  }

  xOf(at: number): number {
    const piece = this.pieces.find(({ to }) => at <= to) ?? this.pieces.at(-1);
    if (piece === undefined) return 0;
    const inset = insetOf(piece);
    const part = piece.to === piece.from ? 0 : (at - piece.from) / (piece.to - piece.from);
    return piece.x + inset + Math.min(1, Math.max(0, part)) * (piece.width - 2 * inset);
  }

  /**
   * Returns the middle of idle time. A fold is looked up directly, because the period before it can have zero length.
   */
  middleOf({ from, to }: Interval): number {
    const fold = this.pieces.find((piece) => piece.isFold && piece.from === from);
    return fold === undefined ? (this.xOf(from) + this.xOf(to)) / 2 : fold.x + fold.width / 2;
  }

  timeAt(x: number): number {
    const piece = this.pieces.find((each) => x <= each.x + each.width) ?? this.pieces.at(-1);
    if (piece === undefined) return 0;
    const inset = insetOf(piece);
    const part = (x - piece.x - inset) / Math.max(1, piece.width - 2 * inset);
    return piece.from + Math.min(1, Math.max(0, part)) * (piece.to - piece.from);
  }

  isFolded(x: number): boolean {
    return this.pieces.some((piece) => piece.isFold && x >= piece.x && x <= piece.x + piece.width);
  }

  /** The clock time at the start of each period, and the elapsed time since then, between two positions. */
  ticks(from: number, to: number): readonly Tick[] {
    return this.pieces
      .filter(({ isFold, x, width }) => !isFold && x + width > from && x < to)
      .flatMap((piece) => this.#ticksOf(piece))
      .filter(({ x }) => x > from && x < to);
  }

  #ticksOf(piece: Piece): readonly Tick[] {
    const ms = piece.to - piece.from;
    const text = clockText(piece.from);
    // A narrow period has no space for its label.
    if (piece.width < text.length * digitWidth + padding) return [];
    const ticks: Tick[] = [{ x: this.xOf(piece.from), text, isStart: true }];
    if (ms === 0) return ticks;
    const step = niceStep((minTickWidth / (piece.width - 2 * insetOf(piece))) * ms);
    for (let passed = step; passed <= ms; passed += step) {
      const x = this.xOf(piece.from + passed);
      const isFree = x - piece.x > minTickWidth && piece.x + piece.width - x > 48;
      if (isFree) ticks.push({ x, text: `+${passedText(passed)}`, isStart: false });
    }
    return ticks;
  }
}

/** The space before the first and after the last mark of a period. */
function insetOf({ isFold, width }: Piece): number {
  return isFold ? 0 : Math.min(padding, width / 5);
}

interface Fit {
  readonly pxPerMs: number;
  /** How much of the space requested for marks is granted to active periods, from 0 (none) to 1 (all). */
  readonly crowding: number;
}

function widthOf({ from, to, isFold, count }: Stretch, { pxPerMs, crowding }: Fit): number {
  if (isFold) return foldWidth;
  const crowd = Math.min(maxCrowdWidth, count * widthPerMark) * crowding;
  return Math.max(minStretchWidth, crowd, (to - from) * pxPerMs) + 2 * padding;
}

/** Allocates space for the marks first and then divides the rest by duration. */
function fitInto(stretches: readonly Stretch[], width: number): Fit {
  const total = (fit: Fit) => stretches.reduce((sum, stretch) => sum + widthOf(stretch, fit), 0);
  const crowding = findMax(1, (each) => total({ pxPerMs: 0, crowding: each }) <= width);
  return { crowding, pxPerMs: findMax(width, (pxPerMs) => total({ pxPerMs, crowding }) <= width) };
}

/** Returns the largest value up to `max` that fits, or 0 if none does. */
function findMax(max: number, fits: (value: number) => boolean): number {
  if (fits(max)) return max;
  let low = 0;
  let high = max;
  for (let round = 0; round < 60; round += 1) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000].concat(
  [1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440, 2880, 10_080].map((minutes) => minutes * 60_000),
);

function niceStep(atLeast: number): number {
  return steps.find((step) => step >= atLeast) ?? Math.ceil(atLeast / 604_800_000) * 604_800_000;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayAndClock = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});

function clockText(at: number): string {
  return new Date(at).toDateString() === new Date().toDateString()
    ? clock.format(at)
    : dayAndClock.format(at);
}

/** Formats 200 ms, 1.5 s, 4 min, 2 h 30. The values are exact because ticks are at round times. */
function passedText(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${ms / 1000} s`;
  if (ms < 3_600_000) {
    const seconds = (ms % 60_000) / 1000;
    return `${Math.floor(ms / 60_000)}${seconds === 0 ? " min" : `:${String(seconds).padStart(2, "0")}`}`;
  }
  const minutes = (ms % 3_600_000) / 60_000;
  if (ms < 86_400_000 || minutes > 0)
    return `${Math.floor(ms / 3_600_000)} h${minutes === 0 ? "" : ` ${minutes}`}`;
  return `${ms / 86_400_000} d`;
}
