import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { silentTerminal } from "../../../test/support/cli.ts";
import { GatewayPeer, goodToken } from "../../../test/support/gateway-peer.ts";
import { soon } from "../../../test/support/soon.ts";
import { CallError } from "../../client/contract.ts";
import { tokenPath } from "../../gateway/auth/admin-token.ts";
import { RequestRefusedError } from "../../gateway/methods/dispatch.ts";
import { claimRunning, runningPath } from "../../gateway/running-file.ts";
import { invalidRequest } from "../../protocol/errors.ts";
import type { TemporaryFolder } from "../../testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import { reportFailure } from "../output/errors.ts";
import type { Terminal } from "../output/terminal.ts";
import { connectToGateway } from "./connect-to-gateway.ts";
import { withCalls } from "./with-calls.ts";

let peer: GatewayPeer;
let folder: TemporaryFolder;
let printed: { out: string; err: string };
/** A string in the format of a token. */
const fileToken = `skein_${"a".repeat(43)}`;

beforeEach(async () => {
  peer = new GatewayPeer();
  await peer.listen();
  folder = temporaryFolder();
  printed = { out: "", err: "" };
});
afterEach(async () => {
  await peer.close();
  folder.remove();
});

function terminal(env: Terminal["env"] = {}): Terminal {
  return {
    ...silentTerminal(folder.path),
    env,
    out: (text) => {
      printed.out += text;
    },
    err: (text) => {
      printed.err += text;
    },
  };
}
const running = (url = peer.url) => claimRunning(folder.path, { url, exclusively: (act) => act() });
const reach = (env?: Terminal["env"]) =>
  connectToGateway({ terminal: terminal(env), options: {} }, folder.path);

describe("the running gateway of a folder", () => {
  test("without one, uses the folder itself silently", async () => {
    expect(await reach()).toBeNull();
    expect(printed.err).toBe("");
  });

  test("is called with SKEIN_TOKEN, transparently for commands", async () => {
    running();
    peer.answer = ({ ok, params }) => ok({ count: 1, sessions: [], asked: params });
    const env = { SKEIN_TOKEN: goodToken };
    const options = { dir: folder.path, user: "ann" };
    const answer = await withCalls({ terminal: terminal(env), options }, ({ calls, reader }) =>
      calls.call("sessions.list", { limit: 3, ...reader }),
    );
    expect(answer).toEqual({ count: 1, sessions: [], asked: { limit: 3, userId: "ann" } });
    await soon(() => peer.sockets.size).toBe(0);
  });

  test("is called with the token of the folder if none is set", async () => {
    running();
    writeFileSync(tokenPath(folder.path), `${fileToken}\n`, { mode: 0o600 });
    const shown: unknown[] = [];
    peer.greet = (request) => {
      shown.push(request.params.auth);
      peer.hello({ ...request, params: { auth: { token: goodToken } } });
    };
    const calls = await reach({ SKEIN_TOKEN: "" });
    expect(calls).not.toBeNull();
    expect(shown).toEqual([{ token: fileToken }]);
    await calls?.close();
  });

  test("a rejected token is an error that names the token and the remedy", async () => {
    running();
    await expect(reach({ SKEIN_TOKEN: "skein_bad" })).rejects.toMatchObject({
      code: "unauthorized",
      message: expect.stringContaining("SKEIN_TOKEN. Set SKEIN_TOKEN to a valid token"),
    });
    writeFileSync(tokenPath(folder.path), fileToken, { mode: 0o600 });
    await expect(reach()).rejects.toMatchObject({ message: expect.stringContaining("Remove that file") });
  });

  test("an unreachable gateway or a missing token is reported", async () => {
    const { url } = peer;
    running();
    expect(await reach()).toBeNull();
    expect(printed.err).toContain(`The gateway at ${url} was not used: there is no token in`);
    printed.err = "";
    await peer.close();
    expect(await reach({ SKEIN_TOKEN: goodToken })).toBeNull();
    expect(printed.err).toMatch(
      /^note: .*cannot be reached.* The command opens the folder directly instead\.\n$/,
    );
    await peer.listen();
  });

  test("ignores the loopback address of another machine", async () => {
    running();
    const path = runningPath(folder.path);
    const written = JSON.parse(readFileSync(path, "utf8"));
    writeFileSync(path, JSON.stringify({ ...written, host: "elsewhere" }));
    expect(await reach({ SKEIN_TOKEN: goodToken })).toBeNull();
    expect([printed.err, peer.connects]).toEqual(["", 0]);
    const far = { ...written, host: "elsewhere", url: peer.url.replace("127.0.0.1", "0.0.0.0") };
    writeFileSync(path, JSON.stringify(far));
    writeFileSync(tokenPath(folder.path), fileToken, { mode: 0o600 });
    await expect(reach()).rejects.toMatchObject({ code: "unauthorized" });
    expect(peer.connects).toBe(1);
  });

  test.each([
    ["of another machine", { host: "elsewhere" }],
    ["of this machine, as far as can be determined", { started: null, bootId: null }],
  ])(
    "[ATG1] does not send SKEIN_TOKEN to the gateway %s of a folder that another user created",
    async (_, lie) => {
      running();
      const path = runningPath(folder.path);
      const written = JSON.parse(readFileSync(path, "utf8"));
      // Reaches the peer even though it is not the address of any machine.
      writeFileSync(
        path,
        JSON.stringify({ ...written, ...lie, url: peer.url.replace("127.0.0.1", "0.0.0.0") }),
      );
      const shown: unknown[] = [];
      peer.greet = (request) => void shown.push(request.params.auth);
      expect(await reach({ SKEIN_TOKEN: goodToken })).toBeNull();
      expect([shown, printed.err]).toEqual([[], expect.stringContaining("is never sent to another machine")]);
    },
  );
});

describe("an error from a gateway", () => {
  const report = (error: unknown, json = false) => reportFailure(error, terminal(), json);

  test("is one line with its code", () => {
    const error = new CallError({ code: "rate_limited", message: "Too many\nrequests." });
    expect(report(error)).toBe(1);
    expect(printed.err).toBe("error: Too many\\u000arequests. (rate_limited)\n");
  });

  test("with --json has the same code as without a gateway", () => {
    const details = { reason: "invalid_arguments" };
    expect(report(new CallError({ code: "invalid_request", message: "No.", details }), true)).toBe(2);
    expect(JSON.parse(printed.out)).toEqual({ status: "error", code: "invalid_arguments", error: "No." });
  });

  test("invalid params give the same error without a gateway", () => {
    const wire = invalidRequest([{ path: "label", problem: "is too long" }]);
    for (const error of [new RequestRefusedError(wire), new CallError(wire)]) {
      printed.err = "";
      expect(report(error)).toBe(2);
      expect(printed.err).toMatch(
        /^error: "label" is too long\. Run `skein --help` for usage.* \(invalid_request\)\n$/,
      );
    }
  });
});
