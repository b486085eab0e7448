import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ModelStep, ScriptedModel } from "../../src/entry-testing.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import type { AgentSpec, Entry, Skein, SkeinEvent, SkeinOptions } from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import { emptyStore } from "./empty-store.ts";
import { textOf } from "./text.ts";

type SkeinEventType = SkeinEvent["type"];
type Script = Parameters<typeof scriptedModel>[0];

export interface OpenedSkein {
  readonly skein: Skein;
  readonly model: ScriptedModel;
  readonly reported: unknown[];
  readonly events: SkeinEvent[];
  /** Resolves to the next event of a type, or to one that has already arrived. */
  until<T extends SkeinEventType>(type: T, is?: (event: SkeinEvent<T>) => boolean): Promise<SkeinEvent<T>>;
  /** Returns a session's branch, one short line per message. */
  lines(sessionId: string, userId?: string): Promise<string[]>;
}

const opened: Skein[] = [];
const folders: string[] = [];

/** A Skein instance with a scripted model and one agent, `main`. */
export async function withScript(
  script: Script,
  agent: Partial<AgentSpec> = {},
  options: SkeinOptions = {},
): Promise<OpenedSkein> {
  const model = scriptedModel(script);
  const reported: unknown[] = [];
  const choices = {
    ...(options.store === undefined && options.memory === undefined ? await emptyStore(options) : {}),
    config: null,
    env: {},
    models: { "rehearsal/script": model, "priced/script": model },
    agents: [defineAgent({ id: "main", model: "rehearsal/script", ...agent })],
    report: (error: unknown) => reported.push(error),
    ...options,
  };
  const skein = await createSkein(choices);
  opened.push(skein);
  const events: SkeinEvent[] = [];
  skein.subscribe((event) => events.push(event));
  return {
    skein,
    model,
    reported,
    events,
    until: (type, is = () => true) => nextEvent(skein, events, type, is),
    lines: (sessionId, userId) => linesOf(skein, sessionId, userId),
  };
}

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "skein-library-"));
  folders.push(folder);
  return folder;
}

/** For use in afterEach. */
export async function closeAll(): Promise<void> {
  await Promise.all(opened.splice(0).map((skein) => skein.close({ graceMs: 0 })));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** Returns the requested number of simple answers. */
export function answering(text = "Yes."): (request: unknown, index: number) => ModelStep {
  return (_, index) => ({ text: `${text} ${index + 1}` });
}

function nextEvent<T extends SkeinEventType>(
  skein: Skein,
  events: readonly SkeinEvent[],
  type: T,
  is: (event: SkeinEvent<T>) => boolean,
): Promise<SkeinEvent<T>> {
  const fits = (event: SkeinEvent) => event.type === type && is(event as SkeinEvent<T>);
  const known = events.find(fits);
  if (known !== undefined) return Promise.resolve(known as SkeinEvent<T>);
  return new Promise((resolve) => {
    const leave = skein.subscribe((event) => {
      if (!fits(event)) return;
      leave();
      resolve(event as SkeinEvent<T>);
    });
  });
}

async function linesOf({ store }: Skein, sessionId: string, userId?: string): Promise<string[]> {
  const scope = userId === undefined ? {} : { userId };
  const page = await store.sessions.page(scope, sessionId, { along: "branch", limit: 1000 });
  const isMeta = (entry: Entry) =>
    entry.type === "custom" && ["skein.meta", "skein.notes"].includes(entry.customType);
  return (page?.entries ?? []).filter((entry) => !isMeta(entry)).map(lineOf);
}

function lineOf(entry: Entry): string {
  if (entry.type === "custom_message") return `${entry.customType}: ${textOf(entry.content)}`;
  if (entry.type === "custom") return entry.customType;
  if (entry.type !== "message") return entry.type;
  const { message } = entry;
  switch (message.role) {
    case "user":
      return `user: ${textOf(message.content)}`;
    case "assistant": {
      const calls = message.content.flatMap((block) => (block.type === "toolCall" ? [block.name] : []));
      const said = [textOf(message.content), ...calls.map((name) => `(${name})`)].filter(Boolean).join(" ");
      const why =
        message.stopReason === "stop" || message.stopReason === "toolUse" ? "" : ` [${message.stopReason}]`;
      return `assistant: ${said}${why}`;
    }
    case "toolResult":
      return `result: ${textOf(message.content).slice(0, 80)}${message.isError === true ? " [failed]" : ""}`;
    case "custom":
      return `${message.customType}: ${textOf(message.content)}`;
    default:
      return message.role;
  }
}
