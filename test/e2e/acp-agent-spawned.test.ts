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

/** `skein acp`, and a sub-agent of its session that uses a tool in `tools.ask`. */

const server = supportProgram("mcp-stdio");
const config = [
  "agents: { main: { tools: { ask: [toys__echo] } } }",
  `mcpServers: { toys: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(server)}] } }`,
  "",
].join("\n");
const spawn = 'spawn a helper to use the tool toys__echo with {"say": "hello there"}';

describe.each(["on the folder itself", "through a gateway"])(
  "approval requests of a spawned session, %s",
  (how) => {
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

    test("[AAG40] are asked in the parent's editor, and decided by the answer", async () => {
      const { editor } = one;
      for (const [answer, status, report] of [
        [allowed, "completed", /hello there/],
        [rejected, "failed", /not approved/],
      ] as const) {
        const id = await editor.create(folder.path);
        editor.permit = async () => answer;
        const before = editor.asked.length;
        await editor.prompt(id, spawn);
        await expect.poll(() => editor.asked.length).toBe(before + 1);
        const question = editor.asked.at(-1);
        expect(question).toMatchObject({
          sessionId: id,
          toolCall: {
            name: "toys__echo",
            title: expect.stringMatching(/^helper-1( \(2\))?: toys__echo \{"say":"hello there"\}$/),
          },
        });
        const callId = question?.toolCall.toolCallId;
        const states = () => editor.of("tool_call_update").filter(({ toolCallId }) => toolCallId === callId);
        await expect.poll(() => states().map((each) => each.status)).toEqual([status]);
        const told = () => JSON.stringify(editor.updates.filter(({ sessionId }) => sessionId === id));
        await expect.poll(told).toMatch(report);
      }
    });

    test("[AAG42] a request of the session itself is withdrawn too when another process answers it, and the turn continues", async () => {
      const { editor } = one;
      const id = await editor.create(folder.path);
      const taken = Promise.withResolvers<void>();
      editor.permit = (_, signal) =>
        new Promise((_answer, reject) => {
          signal.addEventListener("abort", () => {
            taken.resolve();
            reject(new Error("taken back"));
          });
        });
      const answered = editor.prompt(id, 'use the tool toys__echo with {"say": "hello there"}');
      await expect.poll(() => editor.asked.length).toBe(1);
      const at = { cwd: folder.path, env: { SKEIN_DIR: dir } };
      const { approvals } = JSON.parse((await run(["runs", "ls", "--json"], at)).out) as {
        approvals: { approvalId: string }[];
      };
      expect(await run(["runs", "approve", approvals[0]?.approvalId ?? ""], at)).toMatchObject({ exit: 0 });
      await taken.promise;
      expect(await answered).toMatchObject({ stopReason: "end_turn" });
      expect(JSON.stringify(editor.updates)).toMatch(/hello there/);
    });

    test("[AAG42] are withdrawn when answered elsewhere, and asked again when the session is opened again", async () => {
      const { editor } = one;
      const id = await editor.create(folder.path);
      const taken: string[] = [];
      editor.permit = ({ toolCall: { toolCallId } }, signal) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            taken.push(toolCallId);
            reject(new Error("taken back"));
          });
        });
      const answered = editor.prompt(id, spawn).catch(() => null);
      await expect.poll(() => editor.asked.length).toBe(1);
      const other = gateway === null ? null : await acpInside(folder.path, ["--dir", dir]);
      if (other !== null) {
        other.editor.permit = () => new Promise(() => undefined);
        await other.editor.agent.request("session/load", { sessionId: id, cwd: folder.path, mcpServers: [] });
        await expect.poll(() => other.editor.asked.length).toBe(1);
        expect(other.editor.asked[0]?.toolCall).toEqual(editor.asked[0]?.toolCall);
      }
      const at = { cwd: folder.path, env: { SKEIN_DIR: dir } };
      const { approvals } = JSON.parse((await run(["runs", "ls", "--json"], at)).out) as {
        approvals: { approvalId: string }[];
      };
      expect(approvals).toHaveLength(1);
      expect(await run(["runs", "approve", approvals[0]?.approvalId ?? ""], at)).toMatchObject({ exit: 0 });
      await expect.poll(() => taken).toEqual([editor.asked[0]?.toolCall.toolCallId]);
      await answered;
      await expect.poll(() => JSON.stringify(editor.updates)).toMatch(/"completed"/);
      await other?.leave();
    });
  },
);
