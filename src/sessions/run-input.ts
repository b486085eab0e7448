import type { Entry } from "../core/entries.ts";
import { prependedContextType as customType, textOf } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { EntryDraft, MessageDraft } from "../core/seal.ts";
import { cutText } from "../core/text.ts";
import type { Claim, HeldRun, Run } from "../runs/contract.ts";
import type { SessionRecord } from "../store/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { App } from "./app.ts";
import type { GuardedAppend } from "./append.ts";
import { promptImages } from "./prompt-images.ts";
import type { RunWriter } from "./run-writer.ts";
import { tailOf } from "./run-writer.ts";

// Input is written under IDs assigned when it was accepted, so writing it twice has no effect.

/** The maximum number of characters that a note quotes from a message. */
const maxQuoted = 300;

interface WriteInputOptions {
  /** Whether the model accepts images. */
  readonly seesImages: boolean;
  /** The context that hooks add before the prompt. */
  readonly prepend: string | null;
}

/** Returns the ID of the entry for the context that hooks add before an input. */
export function prependedEntryId(entryId: string): string {
  return `${entryId}-context`;
}

/** Writes the input of a new or recovered run. `refused` explains why a hook or the guard rejected it. */
export async function writeInput(
  { store, files }: Pick<App, "store" | "files">,
  session: SessionRecord,
  writer: RunWriter,
  run: Run,
  options: WriteInputOptions,
): Promise<{ readonly refused: string | null; readonly wasThere: boolean }> {
  const context = prependedEntry(options.prepend);
  // The context comes before the input. If the input already exists, the context either exists too or can no longer be
  // added.
  const isFirst =
    context !== null &&
    (await store.sessions.entry(scopeOfSession(session), session.sessionId, run.entryId)) === null;
  if (isFirst) await writer.note(context, prependedEntryId(run.entryId));
  const { refused, wasThere } = await writeMessage(files, session, writer, run, options.seesImages);
  return { refused, wasThere: wasThere === true };
}

/** Quotes the message to answer, because later messages follow a retried run's input. */
export async function noteRetriedInput(writer: RunWriter, run: Run): Promise<void> {
  const said = JSON.stringify(cutText(promptOf(run), maxQuoted));
  const content = `[Skein] An earlier message was never answered because its run did not finish. Answer it now: ${said}`;
  const entry = { type: "custom_message", customType: "skein.retry", content, display: true } as const;
  await writer.note(entry, `${run.runId}-retry`, { isInput: true });
}

/** Writes input that arrived during a turn. Called only when all calls have been answered, before the next request. */
export async function takeSteered(
  { runs, files }: Pick<App, "runs" | "files">,
  session: SessionRecord,
  writer: RunWriter,
  held: HeldRun,
  seesImages: boolean,
): Promise<boolean> {
  let isAny = false;
  for (const { runId } of await runs.steerable(held)) {
    const input = await runs.reserveInput(held, runId);
    if (input === null) continue;
    isAny = true;
    await writeMessage(files, session, writer, input, seesImages);
    await runs.mergeInput(held, runId);
  }
  return isAny;
}

/**
 * Writes the messages that woke a run, or the other announcements that share an announcement's turn. A note then names
 * the awaited runs that are still open or that ended without a reply.
 */
export async function writeArrivals(
  { runs, store }: Pick<App, "runs" | "store">,
  session: SessionRecord,
  writer: RunWriter,
  { held, arrivals, stillOpen, endedSilent }: Claim,
): Promise<void> {
  const { runId, fence } = held;
  const missing = missingText(stillOpen, endedSilent);
  const noteOnce = async (content: string) => {
    if (isWakeOf(runId, (await tailOf({ store }, session)).findLast(isSaid))) return;
    const entry = { type: "custom_message", customType: "skein.wake", content, display: true } as const;
    await writer.note(entry, `${runId}-wake-${fence}`, { isInput: true });
  };
  if (arrivals.length === 0) {
    await noteOnce(missing ?? "[Skein] You are awake again. Nothing you were waiting for is still open.");
    return;
  }
  // Each message has its own ID, so that a process that resumes after a crash writes only the missing ones.
  for (const each of arrivals) await writer.say(withProvenance(each), each.entryId);
  if (missing !== null) await noteOnce(missing);
  for (const each of arrivals.toReversed()) await runs.mergeInput(held, each.runId);
}

function isSaid({ type }: Entry): boolean {
  return type === "message" || type === "custom_message";
}

/** Whether the last entry is a note that the lost owner wrote for the same wake. */
function isWakeOf(runId: string, last: Entry | undefined): boolean {
  return last?.type === "custom_message" && last.id.startsWith(`${runId}-wake-`);
}

/** Names the runs that a sleeping run waited for without receiving a reply. Returns `null` if there are none. */
export function missingText(open: readonly string[], endedSilent: readonly string[]): string | null {
  const sentences = [
    ...(endedSilent.length === 0 ? [] : [`Ended without a reply: ${endedSilent.join(", ")}.`]),
    ...(open.length === 0 ? [] : [`The wait has timed out. Still open: ${open.join(", ")}.`]),
  ];
  return sentences.length === 0 ? null : `[Skein] ${sentences.join(" ")}`;
}

/** Returns a run's message with its provenance. */
function withProvenance({ message, provenance }: Run): MessageDraft {
  if (message.role !== "user") return message;
  return { ...message, ...present({ provenance: message.provenance ?? provenance }) };
}

/**
 * Writes a run's message. Attaches the images whose paths a local user typed, and adds notes about those that could not
 * be attached.
 */
async function writeMessage(
  files: App["files"],
  session: SessionRecord,
  writer: RunWriter,
  run: Run,
  seesImages: boolean,
): Promise<GuardedAppend> {
  const { runId, options, entryId } = run;
  if (run.message.role !== "user") return writer.say(run.message, entryId, { isInput: true });
  const message = withProvenance(run);
  if (message.role !== "user" || typeof message.content !== "string") return writer.say(message, entryId);
  const origin = options.origin ?? "api";
  const { content, notes } = await promptImages(message.content, {
    origin,
    seesImages,
    cwd: session.cwd,
    owner: session,
    files,
  });
  const done = await writer.say({ ...message, content }, entryId);
  const leftOut = notes.map((note) => ({ kind: "image_left_out", note }) as const);
  if (done.wasThere !== true) await writer.record(leftOut, runId);
  return done;
}

export function promptOf({ message }: Run): string {
  return message.role === "user" ? textOf(message.content) : "";
}

/**
 * Returns the entry for the context that hooks add before a prompt, or `null` if there is none. It is separate from the
 * user's message.
 */
export function prependedEntry(context: string | null): EntryDraft | null {
  if (context === null || context.trim() === "") return null;
  return { type: "custom_message", customType, content: context, display: false };
}
