import { parseSessionId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import { displayKey } from "../../core/references.ts";
import { exactName, findEntry, resolveRef } from "../connection/resolve-session.ts";
import type { OpenCalls } from "../connection/with-calls.ts";
import { withCalls } from "../connection/with-calls.ts";
import type { AnswerLine } from "../output/answer.ts";
import { answer } from "../output/answer.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { pathFrom } from "../output/terminal.ts";

export interface NewOptions extends GlobalOptions {
  readonly label?: string;
  readonly cwd?: string;
  readonly id?: string;
}

export async function newCommand(
  terminal: Terminal,
  name: string | undefined,
  options: NewOptions,
): Promise<void> {
  const sessionId = options.id === undefined ? undefined : parseSessionId(options.id);
  await withCalls(
    terminal,
    options,
    async (open) => {
      const { calls, reader, asker } = open;
      const cwd = options.cwd === undefined ? undefined : pathFrom(terminal, options.cwd);
      const made = await calls.call("sessions.create", {
        ...present({ key: name, sessionId, label: options.label, cwd }),
        ...reader,
      });
      const lines = options.json === true ? [] : await linesFor(open, made);
      answer(terminal, options, made, [`made ${displayKey(made.key, asker)}`, ...lines]);
    },
    "create",
  );
}

async function linesFor(
  { calls, reader }: OpenCalls,
  { key, sessionId }: { readonly key: string; readonly sessionId: string },
): Promise<AnswerLine[]> {
  const { transcriptPath } = await calls.call("sessions.get", { key, ...reader });
  const file: AnswerLine[] = transcriptPath === undefined ? [] : [["file", transcriptPath]];
  return [["id", sessionId], ...file];
}

export interface ForkOptions extends GlobalOptions {
  readonly at?: string;
  readonly id?: string;
}

export async function forkCommand(terminal: Terminal, name: string, options: ForkOptions): Promise<void> {
  const sessionId = options.id === undefined ? undefined : parseSessionId(options.id);
  await withCalls(terminal, options, async (open) => {
    const { calls, reader, asker } = open;
    const from = await resolveRef(open, name);
    const key = exactName(from);
    const entryId =
      options.at === undefined ? null : await findEntry(open, { key, ...open.reader }, options.at);
    const made = await calls.call("sessions.fork", {
      key,
      ...present({ entryId, sessionId }),
      ...reader,
    });
    const lines = options.json === true ? [] : await linesFor(open, made);
    const what = `made ${displayKey(made.key, asker)} from ${displayKey(from.key, asker)}`;
    answer(terminal, options, made, [what, ...lines]);
  });
}

export async function resetCommand(terminal: Terminal, name: string, options: GlobalOptions): Promise<void> {
  await withCalls(terminal, options, async (open) => {
    const key = exactName(await resolveRef(open, name));
    const done = await open.calls.call("sessions.reset", { key, ...open.reader });
    answer(terminal, options, done, [
      `${displayKey(done.key, open.asker)} begins anew`,
      ["id", done.sessionId],
      ["before", done.previous.key],
    ]);
  });
}
