import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { usualPortTaken } from "../../scripts/usual-port.ts";
import { claimRunning } from "../../src/gateway/running-file.ts";
import type { TemporaryFolder } from "../../src/testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../src/testing/support/temporary-folder.ts";

let folder: TemporaryFolder;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

const refuse = (code: string) => async () => {
  throw Object.assign(new Error("no"), { code });
};
const taken = refuse("EADDRINUSE");
const portOf = (args: readonly string[], listen: () => Promise<void>, env = {}) =>
  usualPortTaken(args, { cwd: folder.path, root: folder.path, env: { HOME: folder.path, ...env } }, listen);

describe("the default port", () => {
  test("is reported if another program uses it, and only then", async () => {
    expect(await portOf([], taken)).toBe(18_790);
    expect(await portOf([], async () => undefined)).toBe(null);
    expect(await portOf([], refuse("EACCES"))).toBe(null);
  });

  test("a chosen port is used", async () => {
    expect(await portOf(["--port", "18790"], taken)).toBe(null);
    expect(await portOf(["--port=18790"], taken)).toBe(null);
    expect(await portOf([], taken, { SKEIN_GATEWAY__PORT: "18790" })).toBe(null);
    writeFileSync(join(folder.path, "skein.yaml"), "gateway: { port: 18790 }\n");
    expect(await portOf([], taken)).toBe(null);
  });

  test("the folder's own gateway is not another program; an invalid configuration is reported", async () => {
    const claimed = claimRunning(folder.path, { url: "http://127.0.0.1:18790", exclusively: (act) => act() });
    expect(await portOf([], taken)).toBe(null);
    if (claimed.isMine) claimed.mine.release();
    writeFileSync(join(folder.path, "skein.yaml"), "agnts: {}\n");
    await expect(portOf([], taken)).rejects.toThrow('found the key "agnts", expected agents.');
  });
});
