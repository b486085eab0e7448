import { cutText } from "../../../core/text.ts";

/** Nothing that a tool is given is as deep. */
const deepest = 64;

/**
 * A copy of what came as JSON, of about so many characters and 64 levels at most: long texts keep their head, and what
 * is left out says so.
 */
export function fitJson(value: unknown, most: number): unknown {
  return fitted(value, { left: most }, deepest);
}

interface Room {
  left: number;
}

function fitted(value: unknown, room: Room, levels: number): unknown {
  if (typeof value === "string") return fittedText(value, room);
  room.left -= 8;
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value !== "object") return null;
  if (levels === 0) return "[… nested too deep …]";
  return Array.isArray(value)
    ? fittedList(value, room, levels - 1)
    : fittedObject(value as Record<string, unknown>, room, levels - 1);
}

function fittedText(text: string, room: Room): string {
  const kept = cutText(text, Math.max(0, room.left));
  room.left -= text.length + 8;
  return kept.length === text.length ? text : `${kept}[… ${text.length - kept.length} characters left out …]`;
}

function fittedList(list: readonly unknown[], room: Room, levels: number): unknown[] {
  const kept: unknown[] = [];
  for (const each of list) {
    if (room.left <= 0) return [...kept, `[… ${list.length - kept.length} more left out …]`];
    kept.push(fitted(each, room, levels));
  }
  return kept;
}

function fittedObject(value: Readonly<Record<string, unknown>>, room: Room, levels: number) {
  const fields = Object.entries(value).filter(([, each]) => each !== undefined);
  const kept: [string, unknown][] = [];
  for (const [name, each] of fields) {
    if (room.left <= 0) {
      kept.push(["…", `[… ${fields.length - kept.length} more left out …]`]);
      break;
    }
    kept.push([fittedText(name, room), fitted(each, room, levels)]);
  }
  // Never an assignment: a field may be called `__proto__`.
  return Object.fromEntries(kept);
}
