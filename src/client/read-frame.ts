import { isLongJson, parseJson } from "../core/parse-json.ts";
import type { WireError } from "../protocol/errors.ts";
import type { EventFrame } from "../protocol/frames.ts";

export type Answered =
  | { readonly type: "res"; readonly id: string; readonly ok: true; readonly payload: unknown }
  | { readonly type: "res"; readonly id: string; readonly ok: false; readonly error: WireError };

/** What a later gateway may send that nobody here knows. */
export interface OtherFrame {
  readonly type: "other";
}

export type ReceivedFrame = Answered | EventFrame | OtherFrame;

/** Whether a message has to be read by `readLongFrame`. */
export function isLongFrame(data: unknown): data is string {
  return typeof data === "string" && isLongJson(data);
}

/** Reads a message of a socket; `null` if it is not a frame. Payloads come from the gateway and are not checked again. */
export function readFrame(data: unknown): ReceivedFrame | null {
  try {
    return typeof data === "string" ? frameIn(JSON.parse(data)) : null;
  } catch {
    return null; // not JSON
  }
}

/** Reads a long message in slices, so that a page stays responsive; also `null` once `signal` is aborted. */
export async function readLongFrame(text: string, signal: AbortSignal): Promise<ReceivedFrame | null> {
  try {
    return frameIn(await parseJson(text, signal));
  } catch {
    return null; // not JSON, or no longer wanted
  }
}

function frameIn(value: unknown): ReceivedFrame | null {
  if (!isObject(value) || typeof value.type !== "string") return null;
  if (value.type === "res") return isAnswer(value) ? (value as unknown as Answered) : null;
  if (value.type === "event") return isEvent(value) ? (value as unknown as EventFrame) : null;
  return { type: "other" };
}

function isAnswer({ id, ok, error }: Readonly<Record<string, unknown>>): boolean {
  if (typeof id !== "string") return false;
  return ok === true || (ok === false && isError(error));
}

function isError(error: unknown): boolean {
  return isObject(error) && typeof error.code === "string" && typeof error.message === "string";
}

function isEvent({ event, seq, payload }: Readonly<Record<string, unknown>>): boolean {
  if (typeof event !== "string" || !isSeq(seq) || !isObject(payload)) return false;
  return event !== "gap" || (isSeq(payload.after) && isSeq(payload.upTo));
}

function isSeq(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
