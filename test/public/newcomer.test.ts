import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SkeinError } from "../../src/core/errors.ts";
import { createSkein } from "../../src/create-skein.ts";
import type { RunPayload } from "../../src/protocol/runs.ts";
import type { TemporaryFolder } from "../../src/testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../src/testing/support/temporary-folder.ts";
import { run } from "../support/cli.ts";

let home: TemporaryFolder;

beforeEach(() => {
  home = temporaryFolder();
});
afterEach(() => home.remove());

function cli(...args: readonly string[]) {
  return run(args, { cwd: home.path, env: { SKEIN_DIR: "data" } });
}

async function leave(ref: string, text: string): Promise<string> {
  const { out } = await cli("send", ref, text, "--no-wait", "--json");
  return (JSON.parse(out) as { runId: string }).runId;
}

async function shownRun(runId: string): Promise<RunPayload["run"]> {
  const { out } = await cli("runs", "show", runId, "--json");
  return (JSON.parse(out) as RunPayload).run;
}

describe("queued runs of a folder without a gateway", () => {
  test("[NWC5] send, spawn and tool leave runs of other sessions alone", async () => {
    const left = await leave("session:other", "repeat later");
    for (const args of [
      ["send", "main", "repeat now"],
      ["spawn", "repeat now"],
      ["tool", "sessions_spawn", '{"task":"repeat now"}'],
    ])
      expect(await cli(...args)).toMatchObject({ exit: 0 });
    expect(await shownRun(left)).toMatchObject({ state: "queued" });
    expect((await shownRun(left)).startedAt).toBeUndefined();
  });

  test("[NWC5] --no-wait names what runs it", async () => {
    const { out } = await cli("send", "main", "repeat later", "--no-wait");
    expect(out).toContain("accepted; it waits for skein start, or for the next message to this session");
  });

  test("[NWC6] a run that was left in the session is finished first", async () => {
    const left = await leave("main", "spawn a helper to repeat later");
    const { out } = await cli("send", "main", "repeat now", "--queue", "followup", "--json");
    expect(JSON.parse(out)).toMatchObject({ reply: "now" });
    expect(await shownRun(left)).toMatchObject({ state: "ok" });
  });

  test("[NWC7] workers: own leaves what others queued, and by default all of it is run", async () => {
    const left = await leave("session:other", "repeat later");
    const dir = `${home.path}/data`;
    const own = await createSkein({ dir, config: null, workers: "own" });
    const { reply } = await own.session().send("repeat now").result;
    expect(reply).toBe("now");
    expect(await own.runs.get(left)).toMatchObject({ state: "queued", startedAt: null });
    await own.close();
    const all = await createSkein({ dir, config: null });
    expect(await all.ended(left)).toMatchObject({ state: "ok", outcome: { reply: "later" } });
    await all.close();
  });
});

describe("requests that cannot be carried out", () => {
  test.each([
    ["an unknown field", { limitt: 3 }, /sessions\.list: .*limitt/],
    ["a value out of range", { limit: 0 }, /sessions\.list: limit/],
  ])("[NWC8] %s in a service is a SkeinError", async (_, query, problem) => {
    const skein = await createSkein({ memory: true, config: null });
    const failed = skein.sessions.list(query as object);
    await expect(failed).rejects.toBeInstanceOf(SkeinError);
    await expect(failed).rejects.toMatchObject({
      code: "invalid_arguments",
      message: expect.stringMatching(problem),
    });
    await expect(skein.sessions.search({ query: "" })).rejects.toBeInstanceOf(SkeinError);
    await skein.close();
  });

  test.each([["foo/bar"], ["rehearsal/nothing"]])(
    "[NWC9] the model %s is refused at every door",
    async (model) => {
      const { exit, err } = await cli("send", "main", "hello", "--model", model);
      expect(exit).not.toBe(0);
      expect(err).toMatch(/Provider "foo" is not known|There is no model rehearsal\/nothing/);
      const skein = await createSkein({ dir: `${home.path}/data`, config: null });
      await expect(skein.session().send("hello", { model }).result).rejects.toBeInstanceOf(SkeinError);
      expect(await skein.session().record()).toBeNull();
      expect(await skein.runs.list({})).toEqual([]);
      await skein.close();
    },
  );
});
