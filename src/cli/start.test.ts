import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Check } from "typebox/value";
import { describe, expect, test } from "vitest";
import { run, silentTerminal } from "../../test/support/cli.ts";
import type { SmallPieces } from "../../test/support/small-gateway.ts";
import { smallPieces } from "../../test/support/small-gateway.ts";
import { StartSchema } from "../protocol/command-payloads.ts";
import { temporaryFolder } from "../testing/support/temporary-folder.ts";
import { awaitStop } from "./gateway/stop-requests.ts";
import type { ProcessSignals } from "./output/terminal.ts";
import { startCommand } from "./start.ts";

/** Runs the command in a folder until `stop` is called. */
function start(
  cwd: string,
  options: object,
  pieces: SmallPieces = smallPieces(),
  openBrowser?: (url: string) => Promise<string | null>,
) {
  const heard = Promise.withResolvers<(why: string) => void>();
  const exits: number[] = [];
  let out = "";
  const print = (text: string) => {
    out += text;
  };
  const terminal = { ...silentTerminal(cwd), out: print, err: print };
  const signals = {
    onStop: (stop: (why: string) => void) => {
      heard.resolve(stop);
      return () => undefined;
    },
    onReload: () => () => undefined,
    exit: (code: number) => void exits.push(code),
  };
  const done = startCommand(
    { terminal, options: { dir: "root", ...options } },
    { version: "1.2.3", pieces, signals, ...(openBrowser && { openBrowser }) },
  );
  const stop = async () => {
    (await heard.promise)("enough");
    await done;
  };
  return { stop, done, exits, pieces, out: () => out };
}

describe("skein start", () => {
  test("prints one document with --json, also for a gateway that already runs", async () => {
    using folder = temporaryFolder();
    const first = start(folder.path, { port: 0, json: true });
    await expect.poll(first.out).not.toBe("");
    const second = start(folder.path, { port: 0, json: true });
    await second.done;
    await first.stop();
    const [one, two] = [JSON.parse(first.out()), JSON.parse(second.out())];
    expect([Check(StartSchema, one), Check(StartSchema, two)]).toEqual([true, true]);
    expect(one).toMatchObject({ pid: process.pid, wasRunning: false });
    expect(two).toMatchObject({ url: one.url, pid: process.pid, startedAt: one.startedAt, wasRunning: true });
    expect(first.exits).toEqual([]);
  });

  test("--open opens the printed link, also that of a gateway that already runs", async () => {
    using folder = temporaryFolder();
    const opened: string[] = [];
    const open = async (url: string) => {
      opened.push(url);
      return opened.length === 1 ? null : "no browser here";
    };
    const first = start(folder.path, { port: 0, open: true }, smallPieces(), open);
    await expect.poll(() => opened.length).toBe(1);
    expect(first.out()).toContain(opened[0]);
    const second = start(folder.path, { port: 0, open: true }, smallPieces(), open);
    await second.done;
    expect(second.out()).toContain(opened[1]);
    expect(second.out()).toContain("Could not open a browser (no browser here). Open the link manually.");
    await first.stop();
    expect(first.out()).not.toContain("No browser");
  });

  test("the command line overrides the configuration", async () => {
    using folder = temporaryFolder();
    const text =
      "gateway: { host: localhost, port: 1, allowedHosts: [a.example] }\nlogging: { level: silent }\n";
    writeFileSync(join(folder.path, "skein.yaml"), text);
    const one = start(folder.path, { host: "127.0.0.1", port: 0 });
    await expect.poll(one.out).toContain("Press Ctrl-C to stop it");
    const { settings } = one.pieces.parts ?? {};
    expect(settings).toEqual({
      host: "127.0.0.1",
      port: 0,
      isExposed: false,
      servesClients: true,
      allowedHosts: ["a.example"],
      trustProxy: [],
      basePath: "",
      consoleFolder: expect.stringMatching(/dist.console$/),
    });
    await one.stop();
  });

  test("reports an applied configuration change, but prints nothing with --json", async () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "skein.yaml");
    writeFileSync(file, "logging: { level: silent }\n");
    const said = async (options: object) => {
      const one = start(folder.path, { port: 0, ...options });
      await expect.poll(one.out).not.toBe("");
      await expect.poll(() => one.pieces.opened.length).toBe(1);
      writeFileSync(file, `logging: { level: silent }\nagents: { a${Object.keys(options).length}: {} }\n`);
      await expect.poll(() => one.pieces.opened.length).toBe(2);
      await one.stop();
      return one.out();
    };
    expect(await said({})).toContain(`Reloaded ${file}.\n`);
    expect(await said({ json: true })).not.toContain("Reloaded");
  });

  test.each([["70000"], ["-1"], ["http"], ["1.5"]])("--port %s is a usage error", async (port) => {
    const { exit, err } = await run(["start", "--port", port]);
    expect(exit).toBe(2);
    expect(err).toContain("from 0 to 65535");
  });

  test("[GST4] stops after starting if it is asked to stop while it starts", async () => {
    using folder = temporaryFolder();
    const one = start(folder.path, { port: 0 });
    await one.stop();
    expect(one.out()).toContain("Stopping (enough)");
  });

  test("[GST4] only a request after the echo of the first one counts as a second one", async () => {
    let now = 0;
    let atOnce = 0;
    let stop: (why: string) => void = () => undefined;
    const signals: ProcessSignals = {
      onStop: (given) => {
        stop = given;
        return () => undefined;
      },
      onReload: () => () => undefined,
      exit: () => undefined,
    };
    const { requested } = awaitStop(
      signals,
      () => void atOnce++,
      () => now,
    );
    stop("SIGINT");
    now += 499;
    stop("SIGINT");
    expect({ why: await requested, atOnce }).toEqual({ why: "SIGINT", atOnce: 0 });
    now += 1;
    stop("SIGINT");
    expect(atOnce).toBe(1);
  });
});
