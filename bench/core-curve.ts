import { parseSession } from "../src/core/parse-session.ts";
import { SessionTree } from "../src/core/tree.ts";
import { piMessage } from "./messages.ts";
import type { Acts, Figures, Job } from "./side.ts";
import { timed } from "./side.ts";
import { stockOfTexts } from "./texts.ts";

/** How reading, linking and building the context scale with the size of a session, without a store. */
export const acts: Acts = { core };

function session(entries: number): Buffer {
  const textOf = stockOfTexts(760);
  const lines = [JSON.stringify({ type: "session", version: 3, id: "bench", timestamp: "", cwd: "/" })];
  for (let index = 0; index < entries; index++) {
    const parentId = index === 0 ? null : `entry-${index - 1}`;
    const message = piMessage(index, textOf(index), index);
    lines.push(JSON.stringify({ type: "message", id: `entry-${index}`, parentId, timestamp: "", message }));
  }
  return Buffer.concat(lines.map((line) => Buffer.from(`${line}\n`)));
}

async function core({ count = 1 }: Job): Promise<Figures> {
  const small = session(2000);
  for (let round = 0; round < 5; round++) SessionTree.from(parseSession(small)).context();
  const bytes = session(count);
  let parsed = parseSession(bytes.subarray(0, 1));
  const parseMs = await timed(() => {
    parsed = parseSession(bytes);
  });
  let tree = SessionTree.create({ cwd: "/" });
  const linkMs = await timed(() => {
    tree = SessionTree.from(parsed);
  });
  const contextMs = await timed(() => tree.context());
  return { parseMs, linkMs, contextMs, parseUsPerEntry: (parseMs * 1000) / count };
}
