import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { openBooks } from "../../../test/support/token-books.ts";
import { defaultConfig } from "../../config/load.ts";
import { SkeinError } from "../../core/errors.ts";
import { claimRunning } from "../../gateway/running-file.ts";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import { checkPort, portError } from "./port.ts";

const place = { host: "127.0.0.1", port: 80 };
const system = (code: string) => Object.assign(new Error(`listen ${code}`), { code });
const wrapped = (code: string) =>
  new SkeinError("unavailable", { problem: "It cannot listen", advice: "Stop it" }, { cause: system(code) });

describe("errors when listening", () => {
  test.each([
    ["EADDRINUSE", "Port 80 on 127.0.0.1 is in use by another program."],
    ["EACCES", "This user is not allowed to listen on port 80 on 127.0.0.1."],
    ["EADDRNOTAVAIL", "127.0.0.1 is not an address of this machine."],
    ["ENOTFOUND", "The host name 127.0.0.1 could not be resolved."],
  ])("%s, whichever check detects it", async (code, text) => {
    for (const error of [system(code), wrapped(code)]) {
      const told = (await portError(error, place)) as SkeinError;
      expect(told.message.startsWith(text)).toBe(true);
      expect(told.remedy).toMatch(/--(?:port|host) </);
    }
  });

  test("other errors are unchanged", async () => {
    const others = [
      system("ESTRANGE"),
      wrapped("ESTRANGE"),
      new SkeinError("internal", { problem: "no" }),
      null,
    ];
    for (const error of others) expect(await portError(error, place)).toBe(error);
  });
});

function config(root: string, gateway: object) {
  const { gateway: usual, store } = defaultConfig(root);
  return { store, gateway: { ...usual, ...gateway } };
}

describe("doctor and the port", () => {
  test("a free port is fine", async () => {
    using folder = temporaryFolder();
    expect(await checkPort(config(folder.path, { port: 0 }))).toEqual([]);
  });

  test("a port in use is reported, unless the gateway of this folder uses it", async () => {
    using folder = temporaryFolder();
    const other = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    try {
      expect(await checkPort(config(folder.path, { port }))).toEqual([
        {
          area: "ports",
          severity: "warning",
          file: `127.0.0.1:${port}`,
          what: `Port ${port} on 127.0.0.1 is in use by another program.`,
          remedy: expect.stringContaining("--port <number>"),
          fixable: false,
          fixed: false,
        },
      ]);
      const db = openBooks();
      const url = `http://127.0.0.1:${port}`;
      const claimed = claimRunning(folder.path, { url, exclusively: (act) => db.exclusively(act) });
      expect(claimed.isMine).toBe(true);
      const [found] = await checkPort(config(folder.path, { port }));
      expect(found).toMatchObject({ severity: "note", what: expect.stringContaining(url) });
    } finally {
      await new Promise((resolve) => other.close(resolve));
    }
  });

  test("an address that others can reach is reported before it is used", async () => {
    using folder = temporaryFolder();
    const [found] = await checkPort(config(folder.path, { host: "0.0.0.0" }));
    expect(found).toMatchObject({ severity: "warning", remedy: expect.stringContaining("--expose") });
  });
});
