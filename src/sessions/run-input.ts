import type { Entry } from "../core/entries.ts";
import { prependedContextType as customType, textOf } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { EntryDraft, MessageDraft } from "../core/seal.ts";
import { cutText } from "../core/text.ts";
import type { Claim, HeldRun, Run } from "../runs/contract.ts";
import type { App } from "./app.ts";
import type { GuardedAppend } from "./append.ts";
import { promptImages } from "./prompt-images.ts";
import type { RunPlace } from "./run-place.ts";
import type { RunWriter } from "./run-writer.ts";
import { tailOf } from "./run-writer.ts";

/** How what was accepted becomes conversation. Written under ids that were fixed before, so that a second time changes nothing. */

/** Characters of a message that a note quotes. */
const mostQuoted = 300;

export interface BringOptions {
  /** Whether the model sees images. */
  readonly seesImages: boolean;
  /** What hooks put before the prompt. */
  readonly prepend: string | null;
}

/** The ID of the entry that holds what hooks put before an input. */
export function prependedEntryId(entryId: string): string {
  return `${entryId}-context`;
}

/** The input of a new or recovered run. `null`: a hook or the guard refused it. */
export async function bringInput(
  { store, files }: Pick<App, "store" | "files">,
  place: RunPlace,
  writer: RunWriter,
  run: Run,
  options: BringOptions,
): Promise<{ readonly refused: string | null; readonly wasThere: boolean }> {
  const context = prependedEntry(options.prepend);
  // It stands before the input: where that is there already, it is too late for it, or it is there.
  const isFirst =
    context !== null &&
    (await store.sessions.entry(place.scope, place.session.sessionId, run.entryId)) === null;
  if (isFirst) await writer.note(context, prependedEntryId(run.entryId));
  const { refused, wasThere } = await saidBy(files, place, writer, run, options.seesImages);
  return { refused, wasThere: wasThere === true };
}

/** The input of a retry stands before later messages, so a note names the message that the model is to answer. */
export async function pointBack(writer: RunWriter, run: Run): Promise<void> {
  const said = JSON.stringify(cutText(promptOf(run), mostQuoted));
  const content = `[Skein] An earlier message was never answered, because its process was lost. Answer it now: ${said}`;
  const entry = { type: "custom_message", customType: "skein.retry", content, display: true } as const;
  await writer.note(entry, `${run.runId}-retry`, { isInput: true });
}

/** What was said while a turn goes on; only between an answered group of calls and the next request. */
export async function takeSteered(
  { runs, files }: Pick<App, "runs" | "files">,
  place: RunPlace,
  writer: RunWriter,
  held: HeldRun,
  seesImages: boolean,
): Promise<boolean> {
  const waiting = await runs.steerable(held);
  for (const each of waiting) {
    await saidBy(files, place, writer, each, seesImages);
    await runs.steered(held, each.runId);
  }
  return waiting.length > 0;
}

/**
 * What a woken run slept for, or what came with an announcement, each as it was said; what is still open, or has ended
 * silently, is named in a note behind them.
 */
export async function bringArrivals(
  { runs, store }: Pick<App, "runs" | "store">,
  place: RunPlace,
  writer: RunWriter,
  { held, arrivals, stillOpen, endedSilent }: Claim,
): Promise<void> {
  const { runId, fence } = held;
  const missing = missingText(stillOpen, endedSilent);
  const noteOnce = async (content: string) => {
    if (isWakeOf(runId, (await tailOf({ store }, place)).findLast(isSaid))) return;
    const entry = { type: "custom_message", customType: "skein.wake", content, display: true } as const;
    await writer.note(entry, `${runId}-wake-${fence}`, { isInput: true });
  };
  if (arrivals.length === 0) {
    await noteOnce(missing ?? "[Skein] You are awake again; nothing that you waited for is open any more.");
    return;
  }
  // Each under its own id: whoever goes on after a crash may find others beside them, and none is lost or said twice.
  for (const each of arrivals) await writer.say(withProvenance(each), each.entryId);
  if (missing !== null) await noteOnce(missing);
  for (const each of arrivals.toReversed()) await runs.steered(held, each.runId);
}

function isSaid({ type }: Entry): boolean {
  return type === "message" || type === "custom_message";
}

/** A note of this very wake that a lost owner wrote. */
function isWakeOf(runId: string, last: Entry | undefined): boolean {
  return last?.type === "custom_message" && last.id.startsWith(`${runId}-wake-`);
}

/** What a sleeper waited for and has not heard from; `null`: there is nothing. */
export function missingText(open: readonly string[], endedSilent: readonly string[]): string | null {
  const sentences = [
    ...(endedSilent.length === 0 ? [] : [`Ended without a reply: ${endedSilent.join(", ")}.`]),
    ...(open.length === 0 ? [] : [`The time to wait is over. Still open: ${open.join(", ")}.`]),
  ];
  return sentences.length === 0 ? null : `[Skein] ${sentences.join(" ")}`;
}

/** As it was said, with where it came from. */
function withProvenance({ message, provenance }: Run): MessageDraft {
  if (message.role !== "user") return message;
  return { ...message, ...present({ provenance: message.provenance ?? provenance }) };
}

/** Only what somebody types before us may name files; which of them were not taken stands beside it, for people. */
async function saidBy(
  files: App["files"],
  { session }: RunPlace,
  writer: RunWriter,
  { runId, message, options, provenance, entryId }: Run,
  seesImages: boolean,
): Promise<GuardedAppend> {
  if (message.role !== "user") return writer.say(message, entryId, { isInput: true });
  const said = { ...message, ...present({ provenance: message.provenance ?? provenance }) };
  if (typeof said.content !== "string") return writer.say(said, entryId);
  const origin = options.origin ?? "api";
  const { content, notes } = await promptImages(said.content, {
    origin,
    seesImages,
    cwd: session.cwd,
    owner: session,
    files,
  });
  const done = await writer.say({ ...said, content }, entryId);
  const leftOut = notes.map((note) => ({ kind: "image_left_out", note }) as const);
  if (done.wasThere !== true) await writer.tell(leftOut, runId);
  return done;
}

export function promptOf({ message }: Run): string {
  return message.role === "user" ? textOf(message.content) : "";
}

/** What hooks put before a prompt: seen by the model, kept beside what the user said, never inside it. */

/** The entry that keeps it, to be written before the user's own; `null`: there is nothing to keep. */
export function prependedEntry(context: string | null): EntryDraft | null {
  return isBlank(context) ? null : { type: "custom_message", customType, content: context, display: false };
}

function isBlank(context: string | null): context is null {
  return context === null || context.trim() === "";
}
