import { readStored, writeStored } from "./stored.ts";

type Theme = "system" | "light" | "dark";

const slot = "skein.theme";

function readTheme(): Theme {
  const stored = readStored(slot);
  return stored === "light" || stored === "dark" ? stored : "system";
}

/** Sets the page's theme and stores a new choice. */
export function applyTheme(choice?: Theme): Theme {
  if (choice !== undefined) writeStored(slot, choice === "system" ? null : choice);
  const theme = choice ?? readTheme();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  return theme;
}

/** The row height in pixels, for lists that compute positions. Matches `--row` in the style sheet. */
export function rowHeight(): number {
  return matchMedia("(pointer: coarse)").matches ? 44 : 28;
}

/** The properties that determine a session's color. */
interface ThreadOwner {
  readonly sessionId: string;
  readonly key: string;
  readonly userId?: string | undefined;
  /** The parent's key. */
  readonly spawnedBy?: string | undefined;
  readonly label?: string | undefined;
  /** When it first did something, as far as the list says. */
  readonly startedAt?: number | undefined;
}

const threadCount = 12;
/**
 * The distance between neighbors in a list. Neighbors have different lightness, as the distance is odd, and very
 * different hues. Eleven steps lead to the eleven other threads.
 */
const step = 5;
const threads = new Map<string, number>();
const idsByPlace = new Map<string, string>();
const takenByParent = new Map<string, Set<number>>();
/** The colors of the two latest sessions without a parent, latest first. */
let recentRoots: readonly number[] = [];

/**
 * Assigns colors to sessions. With only a hash of the ID, neighbors would often have similar colors, so a child avoids
 * those of its parent and of earlier siblings, and a session without a parent avoids that of the one before it. Every
 * list is passed here before it is shown, and an assigned color does not change, so all views agree. Older sessions are
 * processed first, so new siblings do not change their colors after a reload.
 */
export function assignThreads(sessions: readonly ThreadOwner[]): void {
  const fresh = sessions.filter(({ sessionId }) => !threads.has(sessionId));
  const byPlace = new Map(fresh.map((session) => [placeId(session.key, session), session]));
  for (const [place, { sessionId }] of byPlace) idsByPlace.set(place, sessionId);
  const assign = (session: ThreadOwner) => {
    const { sessionId, spawnedBy } = session;
    if (threads.has(sessionId)) return;
    threads.set(sessionId, hash(sessionId) % threadCount);
    if (spawnedBy === undefined) {
      const thread = chooseRoot(hash(sessionId) % threadCount);
      recentRoots = [thread, ...recentRoots].slice(0, 2);
      return void threads.set(sessionId, thread);
    }
    const place = placeId(spawnedBy, session);
    const parent = byPlace.get(place);
    if (parent !== undefined) assign(parent);
    const taken = takenByParent.get(place) ?? new Set();
    const thread = chooseChild(threadOf(idsByPlace.get(place) ?? place), taken);
    threads.set(sessionId, thread);
    takenByParent.set(place, taken.add(thread));
  };
  for (const session of fresh.toSorted(byAge)) assign(session);
}

const labels = new Intl.Collator("en", { numeric: true });

/** Lists differ in what they know about the start, so sessions of the same second are in the order of their labels. */
function byAge(a: ThreadOwner, b: ThreadOwner): number {
  const second = ({ startedAt = Number.MAX_SAFE_INTEGER }: ThreadOwner) => Math.floor(startedAt / 1000);
  return (
    second(a) - second(b) ||
    labels.compare(a.label ?? "", b.label ?? "") ||
    (a.sessionId < b.sessionId ? -1 : 1)
  );
}

function placeId(key: string, { userId }: ThreadOwner): string {
  return `${userId ?? ""}\n${key}`;
}

/** Returns the next color after the parent's that no sibling has. */
function chooseChild(parent: number, taken: ReadonlySet<number>): number {
  const choices = Array.from(
    { length: threadCount - 1 },
    (_, index) => (parent + step * (index + 1)) % threadCount,
  );
  return choices.find((thread) => !taken.has(thread)) ?? choices[taken.size % choices.length] ?? parent;
}

/** Returns the session's own color, or another one if that is too similar to those of the two before it. */
function chooseRoot(own: number): number {
  const [last = own + step, other = last] = recentRoots;
  const choices = Array.from({ length: threadCount }, (_, index) => (own + step * index) % threadCount);
  const distance = (one: number, two: number) => (one - two + 2 * threadCount) % threadCount;
  const clear = choices.filter((thread) => [3, 5, 7, 9].includes(distance(thread, last)));
  const isFar = (thread: number) =>
    distance(thread, other) >= 4 && distance(thread, other) <= threadCount - 4;
  return clear.find(isFar) ?? clear[0] ?? own;
}

/** Returns a session's color, which is one of twelve threads and the same in every view. */
export function threadOf(sessionId: string): number {
  return threads.get(sessionId) ?? hash(sessionId) % threadCount;
}

function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  // FNV's low bits are weak for short IDs, so the high bits are folded in.
  return (value ^ (value >>> 15)) >>> 0;
}
