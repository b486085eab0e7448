import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentScript } from "../../test/support/acp/script.ts";
import { scriptedAgent } from "../../test/support/acp/script.ts";
import { run } from "../../test/support/cli.ts";
import type { WholeGateway } from "../../test/support/whole-gateway.ts";
import { wholeGateway } from "../../test/support/whole-gateway.ts";
import type { TemporaryFolder } from "../testing/support/temporary-folder.ts";
import { temporaryFolder } from "../testing/support/temporary-folder.ts";
import type { Terminal } from "./output/terminal.ts";

let folder: TemporaryFolder;
let gateway: WholeGateway | null = null;

beforeEach(() => {
  folder = temporaryFolder("skein-spawn-shown-");
});
afterEach(async () => {
  await gateway?.close();
  gateway = null;
  folder.remove();
});

const reading = { sessionUpdate: "tool_call", toolCallId: "t1", title: "Read it", kind: "read" } as const;
const script: AgentScript = {
  turns: [
    [
      { say: "Let me look." },
      { update: { ...reading, status: "in_progress", rawInput: { path: "moss.txt" } } },
      {
        update: {
          sessionUpdate: "tool_call_update",
          toolCallId: "t1",
          status: "completed",
          content: [{ type: "content", content: { type: "text", text: "green" } }],
        },
      },
      { say: "Moss is\ngreen." },
    ],
  ],
};
const acp = { permissions: "allow", agents: { twin: scriptedAgent(script) } };
const config = `agents: { main: { model: rehearsal/basic } }\nacp: ${JSON.stringify(acp)}\n`;

/** A folder with or without a running gateway. */
async function begin(isOver: boolean): Promise<void> {
  if (isOver) gateway = await wholeGateway({ folder, config });
  else {
    mkdirSync(join(folder.path, "root"), { recursive: true });
    writeFileSync(join(folder.path, "skein.yaml"), config);
  }
}

const onTerminal: Partial<Terminal> = { redraws: true };
function spawn(args: readonly string[], more: Partial<Terminal> = onTerminal) {
  const { path } = folder;
  const env = { PATH: process.env.PATH, SKEIN_DIR: join(path, "root") };
  return run(["spawn", ...args], { cwd: path, home: path, env, ...more });
}
const withoutIds = (text: string) =>
  text.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16}/g, "<id>");

describe.each([
  ["on the folder itself", false],
  ["over a gateway", true],
])("the activity of a child, shown %s", (_, isOver) => {
  test("of a sub-agent, next to a result that is the same without a terminal", async () => {
    await begin(isOver);
    const watched = await spawn(["repeat", "the", "moss"]);
    const unwatched = await spawn(["repeat", "the", "moss"], {});
    expect(withoutIds(watched.err)).toBe("↳ subagent:<id>: working\n│ the moss\n");
    expect(unwatched.err).toBe("");
    expect(withoutIds(watched.out)).toBe(withoutIds(unwatched.out));
    expect(watched.out).toMatch(/^spawned subagent:[\s\S]+ended +ok\n[\s\S]*\nthe moss\n$/);
    expect(existsSync(join(folder.path, "root", "gateway.json"))).toBe(isOver);
  });

  test("of an ACP agent, with its tools, in order", async () => {
    await begin(isOver);
    const { err, out, exit } = await spawn(["look", "--runtime", "acp", "--under", "twin"]);
    expect(exit).toBe(0);
    expect(withoutIds(err).split("\n")).toEqual([
      "↳ agent:twin:acp:<id>: working",
      "│ Let me look.",
      '→ read {"path":"moss.txt"}',
      "← read: green",
      "│ Moss is",
      "│ green.",
      "",
    ]);
    expect(out).toMatch(/\n\nMoss is\ngreen\.\n$/);
  });

  test("of a background child, until it has ended", async () => {
    await begin(isOver);
    const { err, out } = await spawn(["repeat", "the", "moss", "--background"]);
    expect(withoutIds(err)).toBe("↳ subagent:<id>: working\n│ the moss\n");
    expect(out).toContain("note");
    expect(out).not.toContain("the moss");
  });

  test.each([["--json"], ["--no-wait"]])("is not shown with %s", async (option) => {
    await begin(isOver);
    expect(await spawn(["repeat", "it", option])).toMatchObject({ err: "", exit: 0 });
  });
});
