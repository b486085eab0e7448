import { afterEach, beforeEach, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { GatewayProcess } from "../support/gateway-process.ts";

let home: TemporaryFolder;
let gateway: GatewayProcess | null = null;

beforeEach(() => {
  home = temporaryFolder();
});
afterEach(async () => {
  await gateway?.stop("SIGKILL");
  gateway = null;
  home.remove();
});

const withWindow = (window: number) =>
  `models: { providers: { rehearsal: { models: { basic: { contextWindow: ${window} } } } } }\n`;
const story = (turn: number) => `repeat ${`Part ${turn} of a story about the gardens of Kyoto. `.repeat(40)}`;

test.each([
  ["with the session tools, as docs/compaction.md shows it", 8000, ""],
  ["without tools", 4000, 'agents: { main: { tools: { deny: ["*"] } } }\n'],
])(
  "[ANS8] a small window of the rehearsal model makes a gateway compact automatically: %s",
  async (_, window, more) => {
    gateway = await GatewayProcess.start(home.path, { config: withWindow(window) + more });
    for (let turn = 1; turn <= 10; turn++) {
      const message = {
        key: "main",
        message: story(turn),
        timeoutMs: 150_000,
        idempotencyKey: `turn-${turn}`,
      };
      expect(await gateway.call("sessions.send", message)).toMatchObject({ state: "ok" });
    }
    const { entries } = await gateway.call("sessions.entries", { key: "main" });
    expect(entries).toContainEqual(
      expect.objectContaining({ type: "compaction", summary: expect.stringContaining("## Goal") }),
    );
    expect(await gateway.call("sessions.context", { key: "main" })).toMatchObject({
      tokens: { window },
    });
  },
);
