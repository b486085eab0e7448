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

const hueCount = 12;
const threads = new Map<string, number>();
const idsByPlace = new Map<string, string>();
const threadsByParent = new Map<string, readonly number[]>();
/** The threads of the two latest sessions without a parent, latest first. */
let recentRoots: readonly number[] = [];

/**
 * Assigns threads to sessions. The hue depends on the session's ID alone, so a session has the same hue in every list and
 * after every reload. Only the lightness depends on the others: a child with the hue of its parent or of an earlier
 * sibling has the other lightness, and so has a session without a parent that has the hue of one of the two before it.
 */
export function assignThreads(sessions: readonly ThreadOwner[]): void {
  const fresh = sessions.filter(({ sessionId }) => !threads.has(sessionId));
  const byPlace = new Map(fresh.map((session) => [placeId(session.key, session), session]));
  for (const [place, { sessionId }] of byPlace) idsByPlace.set(place, sessionId);
  const assign = (session: ThreadOwner) => {
    const { sessionId, spawnedBy } = session;
    if (threads.has(sessionId)) return;
    threads.set(sessionId, hueOf(sessionId));
    if (spawnedBy === undefined) {
      const thread = chooseThread(sessionId, recentRoots);
      recentRoots = [thread, ...recentRoots].slice(0, 2);
      return;
    }
    const place = placeId(spawnedBy, session);
    const parent = byPlace.get(place);
    if (parent !== undefined) assign(parent);
    const siblings = threadsByParent.get(place) ?? [];
    const thread = chooseThread(sessionId, [threadOf(idsByPlace.get(place) ?? place), ...siblings]);
    threadsByParent.set(place, [...siblings, thread]);
  };
  for (const session of fresh.toSorted(byAge)) assign(session);
}

/** Chooses the lightness that fewer of the others with the same hue have. The hue's own one is preferred. */
function chooseThread(sessionId: string, others: readonly number[]): number {
  const hue = hueOf(sessionId);
  const count = (thread: number) => others.filter((other) => other === thread).length;
  const thread = count(hue) > count(hue + hueCount) ? hue + hueCount : hue;
  threads.set(sessionId, thread);
  return thread;
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

/** Returns a session's thread: one of twelve hues, or 12 more for the same hue with the other lightness. */
export function threadOf(sessionId: string): number {
  return threads.get(sessionId) ?? hueOf(sessionId);
}

function hueOf(sessionId: string): number {
  return hash(sessionId) % hueCount;
}

function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  // FNV's low bits are weak for short IDs, so the high bits are folded in.
  return (value ^ (value >>> 15)) >>> 0;
}
