import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Clock } from "../core/clock.ts";
import { systemClock } from "../core/clock.ts";
import { codeOf, isDiskFault } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { realDisk } from "../store/files/disk.ts";
import type { ProcessIdentity } from "../store/files/process-identity.ts";
import { isGone, thisProcess } from "../store/files/process-identity.ts";
import { readPrivate, replacePrivate } from "./auth/private-file.ts";

/** `gateway.json` in the root folder identifies the gateway running for that folder. */

export interface RunningGateway {
  readonly pid: number;
  readonly url: string;
  /** In milliseconds since 1970. */
  readonly startedAt: number;
  /**
   * `true` if the gateway runs on another machine or in another container. Its address might not be reachable from
   * here.
   */
  readonly isElsewhere: boolean;
}

export interface ClaimOptions {
  readonly url: string;
  readonly clock?: Clock;
  /** Runs `act` while excluding all other processes that use the root folder, by holding the lock on its `work.db`. */
  exclusively<T>(act: () => T): T;
}

export type Claimed =
  | { readonly isMine: true; readonly mine: RunningClaim }
  | { readonly isMine: false; readonly running: RunningGateway };

/** This process's claim to be the gateway, which lasts until `release`. */
export interface RunningClaim {
  /** In milliseconds since 1970. */
  readonly startedAt: number;
  /**
   * Why the file could not be written, or `null` if it was written. Until it has been written, `beat` returns `false`
   * and the folder must be claimed again.
   */
  readonly unwritten: string | null;
  /**
   * Call this at least every 30 s so that other machines can see that the gateway is alive. Returns `false` if the file
   * belongs to another process.
   */
  beat(): boolean;
  release(): void;
}

interface Written extends ProcessIdentity {
  readonly url: string;
  readonly startedAt: number;
  /** Distinguishes several claims made by one process. */
  readonly nonce: string;
}

/** A gateway on another machine is considered dead if its file has not been touched for this long. */
const elsewhereStaleMs = 90_000;

export function runningPath(root: string): string {
  return join(root, "gateway.json");
}

/**
 * Returns the gateway that is running for a folder, or `null` if there is none. A file that another user could have
 * written is ignored.
 */
export function findRunning(root: string, clock: Clock = systemClock): RunningGateway | null {
  const file = readPrivate(runningPath(root));
  const written = file === null || file.isExposed ? null : parse(file.text);
  if (file === null || written === null) return null;
  const { pid, url, startedAt, host } = written;
  const isElsewhere = host !== thisProcess().host;
  const isOver = isElsewhere ? clock.now() - file.modifiedAt > elsewhereStaleMs : isGone(written);
  return isOver ? null : { pid, url, startedAt, isElsewhere };
}

/**
 * Claims the folder for this process unless another gateway is running for it. If several processes try at the same
 * time, exactly one succeeds. On a full disk, the claim is valid even though it cannot be written, so that reads keep
 * working.
 */
export function claimRunning(root: string, { url, clock = systemClock, exclusively }: ClaimOptions): Claimed {
  const path = runningPath(root);
  const nonce = randomUUID();
  return exclusively<Claimed>(() => {
    const running = findRunning(root, clock);
    if (running !== null) return { isMine: false, running };
    const startedAt = clock.now();
    const written: Written = { ...thisProcess(), url, startedAt, nonce };
    const unwritten = write(`${JSON.stringify(written, null, 2)}\n`);
    return { isMine: true, mine: { startedAt, unwritten, beat, release } };
  });

  function write(text: string): string | null {
    try {
      replacePrivate(path, text, nonce);
      return null;
    } catch (error) {
      if (!isDiskFault(error)) throw error;
      return (error as Error).message;
    }
  }

  function isMine(): boolean {
    return parse(readPrivate(path)?.text ?? "")?.nonce === nonce;
  }

  function beat(): boolean {
    if (!isMine()) return false;
    try {
      realDisk.touch(path, clock.now());
      return true;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return false;
      throw error;
    }
  }

  function release(): void {
    const remove = () => void (isMine() && realDisk.unlink(path));
    try {
      exclusively(remove);
    } catch {
      // Even if the database is damaged or missing, the file must not name a process that has exited.
      remove();
    }
  }
}

/** Returns `null` if the text was not written by a gateway. */
function parse(text: string): Written | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && isWritten(value) ? (value as unknown as Written) : null;
  } catch {
    return null; // Truncated, or written by another program.
  }
}

function isWritten(value: Readonly<Record<string, unknown>>): boolean {
  const { pid, url, startedAt, started, host, bootId, nonce } = value;
  const isTextOrNone = (each: unknown) => each === null || typeof each === "string";
  return (
    Number.isSafeInteger(pid) &&
    Number(pid) > 0 &&
    Number.isFinite(startedAt) &&
    typeof host === "string" &&
    typeof nonce === "string" &&
    isTextOrNone(started) &&
    isTextOrNone(bootId) &&
    typeof url === "string" &&
    /^https?:\/\/[^\s/]/.test(url) &&
    URL.canParse(url)
  );
}
