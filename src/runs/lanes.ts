import type { InputKind, Lane } from "./contract.ts";

export const lanes: readonly Lane[] = ["main", "subagent", "cron", "nested"];

/** The maximum number of active runs per lane, across all sessions. */
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

/** The order of a session's queue: lower ranks first, then by seq. */
export const ranks = { recovered: 0, woken: 1, silent: 2, interrupt: 3, other: 4 } as const;

/** The slot that a run occupies. Silent runs need no model and therefore no slot. */
export type Slot = Lane | "none";

export const slots: readonly Slot[] = ["none", ...lanes];

/** The next run of a session, if no other run of the session blocks it. */
export interface Ready {
  readonly uid: string;
  readonly user: string;
  readonly slot: Slot;
  readonly seq: number;
  /**
   * The sequence number of the user's last claim in this slot, or 0 if there is none. It comes from a counter that
   * increases with every claim.
   */
  readonly userTurn: number;
  /** The sequence number of the session's last claim. */
  readonly sessionTurn: number;
}

/**
 * Sorts first by the user who has waited longest, then by that user's longest-waiting session, then by the lowest seq.
 */
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
 * Chooses the run to claim next. A run that needs no slot comes first. Otherwise, each lane with a free slot offers its
 * first run in the order of `compareReady`, and the run with the oldest input is chosen. `taken` includes the slots
 * reserved for resuming runs.
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

/** Compares ASCII text in the same order as SQLite. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
