import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import type { TestContext } from "vitest";

/** PgBouncer in transaction mode, in front of the server of an address. */
export interface PgBouncer {
  /** The same address, through PgBouncer. */
  url(target: string): string;
  stop(): Promise<void>;
}

export interface PgBouncerOptions {
  /** The address of the server. */
  readonly target: string;
  /** A folder for its files. */
  readonly folder: string;
  readonly roles: readonly string[];
  /** The number of connections to the server for each role. */
  readonly poolSize: number;
}

function hasPgBouncer(): boolean {
  try {
    execFileSync("pgbouncer", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

async function isAccepting(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return new Promise((resolve) => {
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}

/** Skips the test if the program is not installed. */
export async function startPgBouncer(context: TestContext, options: PgBouncerOptions): Promise<PgBouncer> {
  if (!hasPgBouncer()) return context.skip("pgbouncer is not installed");
  const { hostname, port: serverPort } = new URL(options.target);
  const [folder, port] = [join(options.folder, "pgbouncer"), await findFreePort()];
  mkdirSync(folder);
  const [file, users] = [join(folder, "pgbouncer.ini"), join(folder, "users.txt")];
  writeFileSync(users, options.roles.map((role) => `"${role}" ""\n`).join(""));
  const settings = [
    ...["[databases]", `* = host=${hostname} port=${serverPort}`, "[pgbouncer]", "pool_mode = transaction"],
    ...["listen_addr = 127.0.0.1", `listen_port = ${port}`, "unix_socket_dir =", "auth_type = trust"],
    ...[`auth_file = ${users}`, `default_pool_size = ${options.poolSize}`, "max_client_conn = 1000"],
    // It refuses to run as root.
    ...(process.getuid?.() === 0 ? ["user = nobody"] : []),
  ];
  writeFileSync(file, `${settings.join("\n")}\n`);
  const child = spawn("pgbouncer", [file], { stdio: "ignore" });
  const exited = once(child, "exit");
  while (!(await isAccepting(port)))
    if (child.exitCode !== null) throw new Error(`pgbouncer exited with ${child.exitCode}`);
  return {
    url: (target) => Object.assign(new URL(target), { host: `127.0.0.1:${port}` }).href,
    stop: async () => {
      child.kill("SIGQUIT");
      await exited;
    },
  };
}
