import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { isRecord } from "../../core/is-record.ts";

/** Identifies a process so that other processes can determine whether it is alive. */
export interface ProcessIdentity {
  readonly pid: number;
  /** The kernel's start time, which differs if a pid is reused. `null` if unknown. */
  readonly started: string | null;
  /** The host and its pid namespace. Pids from another container are meaningless here. */
  readonly host: string;
  readonly bootId: string | null;
}

let identity: ProcessIdentity | undefined;

export function thisProcess(): ProcessIdentity {
  identity ??= {
    pid: process.pid,
    started: startOf(process.pid),
    host: [hostname(), linkOf("/proc/self/ns/pid")].filter(Boolean).join(" "),
    bootId: textOf("/proc/sys/kernel/random/boot_id"),
  };
  return identity;
}

/** Reads an identity that a process has stored as JSON. Returns `null` for anything else. */
export function parseIdentity(text: string): ProcessIdentity | null {
  try {
    const value: unknown = JSON.parse(text);
    const isIdentity = isRecord(value) && typeof value.pid === "number" && typeof value.host === "string";
    return isIdentity ? (value as unknown as ProcessIdentity) : null;
  } catch {
    return null; // Written by another program.
  }
}

/** Returns the name of the machine from `host`, without the pid namespace. */
export function machineName(host: string): string {
  return host.split(" ", 1)[0] ?? host;
}

/** Whether a process on this host is known to be dead. Always `false` for another host. */
export function isGone({ pid, started, host, bootId }: ProcessIdentity): boolean {
  const me = thisProcess();
  if (host !== me.host) return false;
  if (bootId !== null && me.bootId !== null && bootId !== me.bootId) return true;
  if (!isAlive(pid)) return true;
  const now = startOf(pid);
  return started !== null && now !== null && now !== started;
}

/** Whether a process is known to be alive: either this process, or one on this host with the same start time. */
export function isKnownToLive(process: ProcessIdentity): boolean {
  const me = thisProcess();
  return process.host === me.host && (process.started !== null || process.pid === me.pid) && !isGone(process);
}

function isAlive(pid: number): boolean {
  // A zombie still accepts signals, but no longer writes.
  if (/^[ZX]$/.test(statOf(pid)?.[0] ?? "")) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** Returns field 22 of /proc/<pid>/stat. */
function startOf(pid: number): string | null {
  return statOf(pid)?.[19] ?? null;
}

/**
 * Returns the fields of /proc/<pid>/stat starting with the third. The name in the second field can contain spaces and
 * parentheses.
 */
function statOf(pid: number): string[] | null {
  const stat = textOf(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ") ?? null;
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null; // Not available on this system.
  }
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return null; // Not available on this system, or the process no longer exists.
  }
}
