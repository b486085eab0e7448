import type { InputKind, Lane } from "./contract.ts";

export const lanes: readonly Lane[] = ["main", "subagent", "cron", "nested"];

/** How many runs of a lane are running at the most, over all sessions. */
export type LaneCaps = Readonly<Record<Lane, number>>;

export const defaultCaps: LaneCaps = { main: 4, subagent: 8, cron: 1, nested: 8 };

export const laneByKind = {
  user: "main",
  channel: "main",
  note: "main",
  cron: "cron",
  send: "nested",
  ping_pong: "nested",
  announce: "nested",
  spawn: "subagent",
} as const satisfies Record<InputKind, Lane>;

/** Where a run stands in its session's queue: lower goes first, then by seq. */
export const ranks = { recovered: 0, woken: 1, silent: 2, interrupt: 3, other: 4 } as const;

/** The slot that a run takes. Silent ones ask no model, and take none. */
export type Slot = Lane | "none";

export const slots: readonly Slot[] = ["none", ...lanes];

/** The next run of a session that nothing of its own session holds up. */
export interface Ready {
  readonly uid: string;
  readonly user: string;
  readonly slot: Slot;
  readonly seq: number;
  /** When a run of its user was last claimed for this slot; 0: never. */
  readonly userTurn: number;
  /** The same of its session. */
  readonly sessionTurn: number;
}

/** Who waited longest goes first: among users, then among the sessions of one, then by seq. */
export function compareReady(a: Ready, b: Ready): number {
  return (
    a.userTurn - b.userTurn ||
    compareText(a.user, b.user) ||
    a.sessionTurn - b.sessionTurn ||
    a.seq - b.seq ||
    compareText(a.uid, b.uid)
  );
}

/**
 * The run to claim next. `taken`: slots that are in use, or that a run whose wait is over is to have first. Among lanes
 * with a free slot the oldest input goes first.
 */
export function chooseNext(
  ready: readonly Ready[],
  taken: Readonly<Record<Lane, number>>,
  caps: LaneCaps,
): Ready | null {
  const best = slots
    .filter((slot) => slot === "none" || taken[slot] < caps[slot])
    .flatMap((slot) => ready.filter((each) => each.slot === slot).toSorted(compareReady)[0] ?? []);
  return best.find(({ slot }) => slot === "none") ?? best.toSorted((a, b) => a.seq - b.seq)[0] ?? null;
}

/** As SQLite compares texts that are ASCII; the order of users that were never served is not a promise. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
