import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { roleOf } from "../messages.ts";
import type { About, Acts, Figures, Job } from "../side.ts";
import { bytesIn, textLength, timed } from "../side.ts";
import { stockOfTexts } from "../texts.ts";
import { load as loadPackage } from "./load.ts";

export const about: About = {
  name: "Claude Agent SDK",
  packages: ["@anthropic-ai/claude-agent-sdk"],
  durability: "no append of its own: the CLI writes the transcripts that it reads",
};

interface ClaudeSdk {
  listSessions(options: { limit?: number }): Promise<readonly unknown[]>;
  getSessionMessages(sessionId: string, options: object): Promise<readonly unknown[]>;
  forkSession(sessionId: string, options: object): Promise<unknown>;
}

/** `fill` writes a transcript as the CLI does, and the other acts read it. */
export const acts: Acts = { fill, load, fork, page, list, disk };

const cwd = "/home/ann/project";
const project = "-home-ann-project";

function sdk(folder: string): Promise<ClaudeSdk> {
  process.env.CLAUDE_CONFIG_DIR = folder;
  return loadPackage<ClaudeSdk>("@anthropic-ai/claude-agent-sdk");
}

function uuid(high: number, low: number): string {
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0");
  return `${hex(high, 8)}-0000-4000-8000-${hex(low, 12)}`;
}

/** One transcript. `texts` alternate between user and assistant. */
export function writeTranscript(
  folder: string,
  number: number,
  texts: readonly string[],
  time: number,
): void {
  const sessionId = uuid(number, 0);
  const lines = texts.map((text, index) => {
    const role = roleOf(index);
    const content = role === "user" ? text : [{ type: "text", text }];
    const reply = {
      id: `msg_${index}`,
      type: "message",
      model: "claude-sonnet-4-5",
      stop_reason: "end_turn",
    };
    return `${JSON.stringify({
      parentUuid: index === 0 ? null : uuid(number, index),
      isSidechain: false,
      userType: "external",
      cwd,
      sessionId,
      version: "2.0.0",
      gitBranch: "main",
      type: role,
      message: role === "user" ? { role, content } : { ...reply, role, content },
      uuid: uuid(number, index + 1),
      timestamp: new Date(time + index).toISOString(),
    })}\n`;
  });
  const place = join(folder, "projects", project);
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, `${sessionId}.jsonl`), lines.join(""));
}

async function fill({ folder, count = 1 }: Job): Promise<Figures> {
  const textOf = stockOfTexts(textLength);
  const texts = Array.from({ length: count }, (_, index) => textOf(index));
  return { ms: await timed(() => writeTranscript(folder, 0, texts, 1_790_000_000_000)) };
}

async function load({ folder }: Job): Promise<Figures> {
  const { getSessionMessages } = await sdk(folder);
  let messages = 0;
  const ms = await timed(async () => {
    messages = (await getSessionMessages(uuid(0, 0), {})).length;
  });
  return { ms, messages };
}

async function fork({ folder }: Job): Promise<Figures> {
  const { forkSession } = await sdk(folder);
  return { ms: await timed(() => forkSession(uuid(0, 0), {})) };
}

async function page({ folder, count = 20 }: Job): Promise<Figures> {
  const { getSessionMessages } = await sdk(folder);
  const read = (offset: number) => timed(() => getSessionMessages(uuid(0, 0), { limit: 20, offset }));
  return {
    firstMs: await read(count - 20),
    lastMs: await read(count - 20),
    anywhereMs: await read(count >> 1),
  };
}

async function list({ folder }: Job): Promise<Figures> {
  const { listSessions } = await sdk(folder);
  let listed = 0;
  const ms = await timed(async () => {
    listed = (await listSessions({ limit: 100 })).length;
  });
  return { ms, listed };
}

async function disk({ folder, count = 1 }: Job): Promise<Figures> {
  const place = join(folder, "projects", project);
  const own = `${uuid(0, 0)}.jsonl`;
  if (!readdirSync(place).includes(own)) throw new Error(`${own} is not there`);
  const bytes = bytesIn(place, (path) => basename(path) === own);
  return { bytes, ratio: bytes / (count * textLength) };
}
