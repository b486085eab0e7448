import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSkein } from "../app.ts";
import type { Skein } from "../sessions/skein.ts";

let folder = "";
let skein: Skein;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "skein-acp-serves-"));
  const config = join(folder, "skein.yaml");
  await writeFile(config, JSON.stringify({ acp: { agents: { twin: { command: process.execPath } } } }));
  skein = await openSkein({ dir: join(folder, "skein"), config, env: {}, quiet: true });
});
afterEach(async () => {
  await skein.close();
  await rm(folder, { recursive: true, force: true });
});

test.each([
  ["the name of an ACP agent does not define an agent", "agent:twin:main"],
  ["a message does not create a session that only a spawn creates", "agent:twin:acp:1"],
])("%s", async (_, sessionKey) => {
  const session = skein.session({ sessionKey });
  await expect(session.accept("Hello")).rejects.toMatchObject({ code: "not_found" });
  await expect(session.open()).rejects.toMatchObject({ code: "not_found" });
  expect(await session.record()).toBe(null);
});
