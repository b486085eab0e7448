import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { OpenAcp } from "../support/acp-client.ts";
import { acpInside, allowed, rejected } from "../support/acp-client.ts";
import { run } from "../support/cli.ts";
import { supportProgram } from "../support/programs.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

/**
 * A folder in which only the configuration decides which tools need approval, with the real `skein acp` running on it.
 */

const server = supportProgram("mcp-stdio");
const config = [
  "agents: { main: { tools: { ask: [toys__echo, sessions_list] } } }",
  `mcpServers: { toys: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(server)}] } }`,
  "",
].join("\n");
const calls = [
  ['use the tool toys__echo with {"say": "hello there"}', "toys__echo", /hello there/],
  ["list the sessions", "sessions_list", /updatedAt/],
] as const;

describe.each(["on the folder itself", "through a gateway"])("tools in tools.ask, %s", (how) => {
  let folder: TemporaryFolder;
  let gateway: WholeGateway | null = null;
  let dir = "";
  let one: OpenAcp;

  beforeEach(async () => {
    folder = temporaryFolder("skein-acp-");
    gateway = how === "through a gateway" ? await wholeGateway({ folder, config }) : null;
    dir = gateway?.root ?? join(folder.path, "root");
    if (gateway === null)
      writeFileSync(join(folder.path, "skein.yaml"), `defaults: { model: rehearsal/basic }\n${config}`);
    one = await acpInside(folder.path, ["--dir", dir]);
  });
  afterEach(async () => {
    await one.leave();
    await gateway?.close();
    folder.remove();
  });

  test("[AJN4] are asked about in the editor, run when allowed, and do not run when rejected", async () => {
    const { editor } = one;
    const id = await editor.create(folder.path);
    for (const [text, name, result] of calls) {
      const before = editor.asked.length;
      editor.permit = async () => rejected;
      expect(await editor.prompt(id, text)).toMatchObject({ stopReason: "end_turn" });
      const refused = editor.of("tool_call_update").at(-1);
      expect(refused).toMatchObject({ status: "failed" });
      expect(JSON.stringify(refused?.content)).toMatch(/not approved/);
      expect(JSON.stringify(refused?.content)).not.toMatch(result);
      editor.permit = async () => allowed;
      expect(await editor.prompt(id, text)).toMatchObject({ stopReason: "end_turn" });
      const done = editor.of("tool_call_update").at(-1);
      expect(done).toMatchObject({ status: "completed" });
      expect(JSON.stringify(done?.content)).toMatch(result);
      const asked = editor.asked.slice(before);
      expect(asked.map(({ sessionId, toolCall }) => [sessionId, toolCall.name])).toEqual([
        [id, name],
        [id, name],
      ]);
    }
  });

  test("[AJN4] can be answered with skein runs approve and deny next to the editor", async () => {
    const { editor } = one;
    const id = await editor.create(folder.path);
    editor.permit = () => new Promise(() => undefined);
    const at = { cwd: folder.path, env: { SKEIN_DIR: dir } };
    for (const [word, status] of [
      ["approve", "completed"],
      ["deny", "failed"],
    ] as const) {
      const before = editor.asked.length;
      const answered = editor.prompt(id, calls[0][0]);
      await expect.poll(() => editor.asked.length).toBe(before + 1);
      const { approvals } = JSON.parse((await run(["runs", "ls", "--json"], at)).out) as {
        approvals: { approvalId: string }[];
      };
      expect(approvals).toHaveLength(1);
      expect(await run(["runs", word, approvals[0]?.approvalId ?? ""], at)).toMatchObject({ exit: 0 });
      expect(await answered).toMatchObject({ stopReason: "end_turn" });
      expect(editor.of("tool_call_update").at(-1)?.status).toBe(status);
      expect(editor.asked).toHaveLength(before + 1);
    }
  });
});
