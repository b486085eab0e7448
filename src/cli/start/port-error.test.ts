import { describe, expect, test } from "vitest";
import { SkeinError } from "../../core/errors.ts";
import { portError } from "./port-error.ts";

const place = { host: "127.0.0.1", port: 80 };
const system = (code: string) => Object.assign(new Error(`listen ${code}`), { code });
const wrapped = (code: string) =>
  new SkeinError("unavailable", { problem: "It cannot listen", advice: "Stop it" }, { cause: system(code) });

describe("why a gateway cannot listen", () => {
  test.each([
    ["EADDRINUSE", "Port 80 at 127.0.0.1 is taken by another program."],
    ["EACCES", "Port 80 at 127.0.0.1 is not for this user."],
    ["EADDRNOTAVAIL", "This machine has no address 127.0.0.1."],
    ["ENOTFOUND", "The name 127.0.0.1 stands for no address."],
  ])("[NWU5] %s, whichever check finds it", async (code, text) => {
    for (const error of [system(code), wrapped(code)]) {
      const told = (await portError(error, place)) as SkeinError;
      expect(told.message.startsWith(text)).toBe(true);
      expect(told.remedy).toMatch(/--(?:port|host) </);
    }
  });

  test("[NWU5] everything else is as it was", async () => {
    const others = [
      system("ESTRANGE"),
      wrapped("ESTRANGE"),
      new SkeinError("internal", { problem: "no" }),
      null,
    ];
    for (const error of others) expect(await portError(error, place)).toBe(error);
  });
});
