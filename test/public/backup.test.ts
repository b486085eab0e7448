import { createHash } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { StartedInside } from "../support/cli-inside.ts";
import { startCli } from "../support/cli-process.ts";
import { GatewayProcess } from "../support/gateway-process.ts";
import type { BackupPayload } from "../support/payloads.ts";
import { supportProgram } from "../support/programs.ts";

const holdServer = supportProgram("mcp-kill-server");
let folder: TemporaryFolder;
let home: string;
let backup: string;
const gateways: GatewayProcess[] = [];
beforeEach(() => {
  folder = temporaryFolder("skein-backup-");
  home = join(folder.path, "home");
  backup = join(folder.path, "backup");
  mkdirSync(home);
  configure();
});
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.stop("SIGKILL");
  folder.remove();
});

/** Allows two concurrent runs, processes input in order, and configures a tool that never answers. */
function configure(): void {
  const env = { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? "" };
  const plain = {
    command: process.execPath,
    args: [holdServer, folder.path, "plain"],
    env,
    timeoutSeconds: 86_400,
  };
  const config = {
    defaults: { model: "rehearsal/basic" },
    lanes: { main: 2 },
    queue: { mode: "followup" },
    mcpServers: { plain },
  };
  writeFileSync(join(home, "skein.yaml"), JSON.stringify(config, null, 1));
  writeFileSync(join(home, ".env"), "DESK_SECRET=not-for-a-backup\n");
}

async function start(at: string): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.start(at);
  gateways.push(gateway);
  return gateway;
}

async function run<T>(gateway: GatewayProcess, ...args: readonly string[]): Promise<T> {
  const command = gateway.cli(...args, "--json");
  const code = await command.end();
  if (code !== 0) throw new Error(`${args.join(" ")}: ${code}\n${command.out}\n${command.err}`);
  return JSON.parse(command.out) as T;
}

/** Runs a command that has no gateway, from another folder. */
function startInside(dir: string, ...args: readonly string[]): StartedInside {
  return new StartedInside(args, folder.path, { SKEIN_DIR: dir });
}

/** Restores the backup without a gateway. Returns the exit code and the output. */
async function restore(target: string, ...more: readonly string[]) {
  const command = startInside(join(folder.path, "unused"), "restore", backup, "--dir", target, ...more);
  const code = await command.end();
  return { code, out: command.out, err: command.err };
}

interface Accepted {
  readonly sessionKey: string;
  readonly word: string;
  readonly runId: string;
}

/** Sends messages with unique texts, one after another, until stopped. */
class Sender {
  readonly accepted: Accepted[] = [];
  isStopped = false;
  readonly #gateway: GatewayProcess;
  readonly #sessionKey: string;

  constructor(gateway: GatewayProcess, sessionKey: string) {
    this.#gateway = gateway;
    this.#sessionKey = sessionKey;
  }

  async send(): Promise<Accepted> {
    const sessionKey = this.#sessionKey;
    const word = `${sessionKey.replaceAll(":", "-")}-${this.accepted.length}-end`;
    const message = `repeat ${word}`;
    const { runId } = await this.#gateway.call("chat.send", { sessionKey, message, idempotencyKey: word });
    const sent = { sessionKey, word, runId };
    this.accepted.push(sent);
    return sent;
  }

  /** At most 60 messages. */
  async keepSending(): Promise<void> {
    while (!this.isStopped && this.accepted.length < 60) await this.send();
  }
}

const isSpoken = (word: string) => (message: object) => JSON.stringify(message).includes(word);

function filesUnder(path: string): string[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name));
}

describe("a restored backup", () => {
  test("[BAK1] [BAK8] has every acknowledged message once, and answers queued input", async () => {
    const gateway = await start(home);
    await gateway.ask("repeat hello", "first");
    // Occupies one session so that later input must wait.
    const held = await gateway.call("chat.send", {
      sessionKey: "session:held",
      message: "use the tool plain__hold with {}",
      idempotencyKey: "held",
    });
    await expect.poll(() => readFileSync(join(folder.path, "told"), "utf8")).toContain("plain called");
    const waiting = new Sender(gateway, "session:held");
    for (let count = 0; count < 3; count++) await waiting.send();
    const senders = Array.from({ length: 4 }, (_, index) => new Sender(gateway, `session:load-${index}`));
    await Promise.all(senders.map((each) => each.send()));
    const sending = senders.map((each) => each.keepSending());
    const acceptedSoFar = () => [waiting, ...senders].flatMap(({ accepted }) => accepted);
    await expect.poll(() => acceptedSoFar().length).toBeGreaterThan(25);
    const before = acceptedSoFar();
    const made = await run<BackupPayload>(gateway, "backup", backup);
    for (const each of senders) each.isStopped = true;
    await Promise.all(sending);
    await gateway.stop("SIGKILL");
    expect(made.configuration).toBe("skein.yaml");

    const other = join(folder.path, "other");
    mkdirSync(other);
    const done = await restore(join(other, "root"), "--json");
    expect(done.code, done.err).toBe(0);
    expect(JSON.parse(done.out)).toMatchObject({ files: made.files, bytes: made.bytes });
    const again = await start(other);
    expect((await again.call("config.get", {})).file).toBe(join(other, "root", "skein.yaml"));
    await again.call("runs.abort", { runId: held.runId });
    for (const { runId, word } of before) {
      const answered = await again.call("agent.wait", { runId, timeoutMs: 150_000 });
      expect(answered).toMatchObject({ finished: true, state: "ok", reply: expect.stringContaining(word) });
    }
    for (const { sessionKey, word } of before) {
      const { messages } = await again.call("chat.history", { sessionKey, limit: 1000 });
      const roles = messages.filter(isSpoken(word)).map(({ role }) => role);
      expect(roles).toEqual(["user", "assistant"]);
    }
    expect((await run<{ ok: boolean }>(again, "doctor")).ok).toBe(true);
  });

  test("[BAK2] [BAK3] has the configuration, and neither .env nor tokens", async () => {
    const gateway = await start(home);
    const { token, tokenId } = await gateway.call("tokens.create", {
      scopes: ["read"],
      label: "for-a-program",
    });
    const made = await run<BackupPayload>(gateway, "backup", backup);
    expect(readFileSync(join(backup, "skein.yaml"))).toEqual(readFileSync(join(home, "skein.yaml")));
    expect(made.leftOut.map(({ what }) => what)).toEqual(
      expect.arrayContaining([expect.stringContaining(".env"), expect.stringContaining("tokens")]),
    );
    for (const { instead } of made.leftOut) expect(instead).not.toBe("");
    const secrets = ["not-for-a-backup", token, gateway.token, tokenId, "for-a-program"];
    const hash = createHash("sha256").update(token).digest("hex");
    for (const file of filesUnder(backup)) {
      const text = readFileSync(file, "latin1");
      for (const secret of [...secrets, hash])
        expect(text.includes(secret), `${secret} in ${file}`).toBe(false);
    }
    const other = join(folder.path, "other");
    mkdirSync(other);
    expect((await restore(join(other, "root"))).code).toBe(0);
    const again = await start(other);
    expect(again.token).not.toBe(gateway.token);
    await expect(again.call("sessions.list", {}, token)).rejects.toThrow("401");
    expect((await again.call("tokens.list", {})).tokens).toHaveLength(1);
  });

  test("[BAK2] has the configuration of the running gateway, wherever the command is run", async () => {
    const gateway = await start(home);
    const command = startInside(gateway.root, "backup", backup, "--json");
    expect(await command.end(), command.err).toBe(0);
    expect(readFileSync(join(backup, "skein.yaml"))).toEqual(readFileSync(join(home, "skein.yaml")));
  });
});

describe("skein restore", () => {
  /** A folder with a session, and a backup of it. */
  async function makeBackup(): Promise<void> {
    const root = join(home, "root");
    for (const args of [
      ["sessions", "new", "trip"],
      ["backup", backup],
    ]) {
      const command = startInside(root, "--config", join(home, "skein.yaml"), ...args);
      expect(await command.end(), command.err).toBe(0);
    }
  }

  test("[BAK4] refuses a folder that is not empty", async () => {
    await makeBackup();
    const target = join(folder.path, "target");
    mkdirSync(target);
    writeFileSync(join(target, "mine"), "kept");
    const { code, err } = await restore(target);
    expect(code).not.toBe(0);
    expect(err).toContain("is not empty");
    expect(readdirSync(target)).toEqual(["mine"]);
  });

  test.skipIf(process.platform === "win32")("copies a file whose name contains a backslash", async () => {
    const name = join("agents", "main", "attachments", "trip", "a\\b.txt");
    mkdirSync(join(home, "root", name, ".."), { recursive: true });
    writeFileSync(join(home, "root", name), "kept");
    await makeBackup();
    const target = join(folder.path, "target");
    const { code, err } = await restore(target);
    expect(code, err).toBe(0);
    expect(readFileSync(join(target, name), "utf8")).toBe("kept");
  });

  test.each<[string, () => void, string]>([
    ["has other bytes", () => flip(join(backup, "work.db")), "work.db"],
    ["is longer", () => appendFileSync(join(backup, "work.db"), "x"), "work.db"],
    ["is outside of it", () => editManifest("work.db", "../work.db"), "../work.db"],
    ["would become the admin token", () => editManifest("skein.yaml", "token"), "token"],
    ["is the missing list of files", () => writeFileSync(join(backup, "backup.json"), "{}"), "backup.json"],
  ])("[BAK5] refuses a backup with a file that %s", async (_, damage, named) => {
    await makeBackup();
    damage();
    const target = join(folder.path, "target");
    const { code, err } = await restore(target);
    expect(code).not.toBe(0);
    expect(err).toContain(named);
    expect(existsSync(target)).toBe(false);
    expect(readdirSync(folder.path).filter((name) => name.includes("target"))).toEqual([]);
  });

  test("[BAK6] when killed leaves the whole folder or none", async () => {
    await makeBackup();
    const blobs = join(home, "root", "agents", "main", "blobs");
    mkdirSync(blobs, { recursive: true });
    const large = Buffer.alloc(32 * 1024 * 1024, "x");
    for (let index = 0; index < 6; index++)
      writeFileSync(join(blobs, createHash("sha256").update(String(index)).digest("hex")), large);
    const copied = join(folder.path, "large");
    const backingUp = startInside(join(home, "root"), "backup", copied);
    expect(await backingUp.end(), backingUp.err).toBe(0);
    const target = join(folder.path, "target");
    const command = startCli(join(folder.path, "unused"), "restore", copied, "--dir", target);
    await expect
      .poll(() => readdirSync(folder.path).some((name) => name.includes("target")), { interval: 1 })
      .toBe(true);
    command.child.kill("SIGKILL");
    await command.end();
    if (existsSync(target)) {
      const manifest = JSON.parse(readFileSync(join(copied, "backup.json"), "utf8")) as Manifest;
      for (const { path, bytes } of manifest.files)
        expect(readFileSync(join(target, path)).length).toBe(bytes);
    }
    // Leftovers from a failed attempt do not block the next one.
    const again = startInside(join(folder.path, "unused"), "restore", copied, "--dir", `${target}-2`);
    expect(await again.end(), again.err).toBe(0);
    const db = new DatabaseSync(join(`${target}-2`, "work.db"), { readOnly: true });
    expect(db.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    db.close();
  });

  test("prints how to start the folder, and what to provide", async () => {
    await makeBackup();
    const target = join(folder.path, "target");
    const { code, out } = await restore(target);
    expect(code).toBe(0);
    expect(out).toContain(join(target, ".env"));
    expect(out).toContain("token");
    expect(out).toContain("skein start");
  });
});

interface Manifest {
  readonly files: readonly { readonly path: string; readonly bytes: number }[];
}

function flip(file: string): void {
  const bytes = readFileSync(file);
  const last = bytes.length - 1;
  bytes[last] = (bytes[last] ?? 0) ^ 1;
  writeFileSync(file, bytes);
}

function editManifest(from: string, to: string): void {
  const file = join(backup, "backup.json");
  writeFileSync(file, readFileSync(file, "utf8").replaceAll(JSON.stringify(from), JSON.stringify(to)));
}
