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
}

const hueCount = 12;
/** The number of preceding families that a session without a parent should not look like. */
const nearbyFamilies = 4;
const threads = new Map<string, number>();
/** The place of each session's root, by the session's place. */
const roots = new Map<string, string>();
/** The threads of each family, by the place of its root. */
const families = new Map<string, Set<number>>();
/** The threads of the latest families. */
let nearby: readonly Set<number>[] = [];

/**
 * Assigns threads to sessions. The hue is hashed from the session's ID. A session whose thread already belongs to an
 * older session of its own or of a nearby family has the same hue with the other lightness or, if that is not free
 * either, the next free hue. A thread that has been assigned never changes while the page is open.
 */
export function assignThreads(sessions: readonly ThreadOwner[]): void {
  const fresh = sessions.filter(({ sessionId }) => !threads.has(sessionId));
  const byPlace = new Map(fresh.map((session) => [placeId(session.key, session), session]));
  const assign = (session: ThreadOwner) => {
    const { sessionId, key, spawnedBy } = session;
    if (threads.has(sessionId)) return;
    // Keeps a session that spawned itself from looking for its parent forever.
    threads.set(sessionId, hueOf(sessionId));
    const place = placeId(key, session);
    const parentPlace = spawnedBy === undefined ? place : placeId(spawnedBy, session);
    const parent = byPlace.get(parentPlace);
    if (parent !== undefined) assign(parent);
    const root = roots.get(parentPlace) ?? parentPlace;
    roots.set(place, root);
    const family = families.get(root) ?? new Set();
    const thread = chooseThread(sessionId, [family, ...nearby]);
    threads.set(sessionId, thread);
    family.add(thread);
    if (families.has(root)) return;
    families.set(root, family);
    nearby = [family, ...nearby].slice(0, nearbyFamilies);
  };
  // IDs increase with time, so a list has the same order if it is read later or in another browser.
  for (const session of fresh.toSorted((a, b) => (a.sessionId < b.sessionId ? -1 : 1))) assign(session);
}

/** Returns the first free thread, starting with the session's own hue, or that hue if no thread is free. */
function chooseThread(sessionId: string, others: readonly ReadonlySet<number>[]): number {
  const hue = hueOf(sessionId);
  const candidates = Array.from({ length: hueCount }, (_, step) => {
    // Five is coprime to twelve, so every hue is tried, and the next one is not a neighbor.
    const next = (hue + 5 * step) % hueCount;
    return [next, next + hueCount];
  });
  return candidates.flat().find((thread) => !others.some((taken) => taken.has(thread))) ?? hue;
}

function placeId(key: string, { userId }: ThreadOwner): string {
  return `${userId ?? ""}\n${key}`;
}

/** Returns a session's thread: a hue from 0 to 11, or 12 plus that number for the hue with the other lightness. */
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
