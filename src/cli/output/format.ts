import { SkeinError } from "../../core/errors.ts";
import { escapeUnprintable } from "../../core/text.ts";
import type { ApprovalPayload, RunRowPayload } from "../../protocol/runs.ts";
import { lostCode } from "../../runs/states.ts";

export function formatBytes(bytes: number): string {
  return scaled(bytes, 1024, ["B", "KB", "MB", "GB", "TB"], " ");
}

export function formatCount(count: number): string {
  return scaled(count, 1000, ["", "k", "M", "G"], "");
}

export function formatCost(usd: number | null): string {
  if (usd === null) return "?";
  if (usd === 0) return "";
  return usd < 0.01 ? "<$0.01" : `$${usd.toFixed(2)}`;
}

const minute = 60_000;
const ageUnits = [
  { unit: "d", ms: 24 * 60 * minute },
  { unit: "h", ms: 60 * minute },
  { unit: "m", ms: minute },
] as const;

/** Formats an age in the largest unit that fits. */
export function formatAge(ms: number): string {
  const span = ageUnits.find((each) => ms >= each.ms);
  return span === undefined ? "now" : `${Math.floor(ms / span.ms)}${span.unit}`;
}

export function pluralize(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

function scaled(value: number, step: number, units: readonly string[], blank: string): string {
  let left = value;
  let unit = 0;
  // Otherwise, 999.96 would be shown as 1000.0.
  while (Number(left.toFixed(1)) >= step && unit < units.length - 1) {
    left /= step;
    unit += 1;
  }
  const digits = unit === 0 || left >= 100 ? 0 : 1;
  return `${left.toFixed(digits)}${blank}${units[unit]}`;
}

const spanUnits: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Parses a date, a date with a time, or a duration before the current time. */
export function parseTime(text: string, now: number): number {
  const [, amount, unit = ""] = /^(\d{1,6})([mhdw])$/.exec(text) ?? [];
  if (amount !== undefined) return now - Number(amount) * (spanUnits[unit] ?? 0);
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) {
    throw new SkeinError("invalid_arguments", {
      problem: `"${text}" is not a time`,
      advice: "Use a date such as 2026-03-01 or 2026-03-01T18:00, or a duration such as 90m, 24h, 7d or 2w",
    });
  }
  return time;
}

/** Formats the date and time to the minute, in UTC. */
export function formatTime(time: number): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 16).replace("T", " ");
}

/** Formats a time in a time zone, with the zone: `2026-01-05 09:00 GMT+1`. */
export function formatTimeIn(time: number, timeZone: string): string {
  const format = new Intl.DateTimeFormat("en-US", {
    ...{ timeZone, hourCycle: "h23", timeZoneName: "short" },
    ...{ year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit" },
  });
  const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, value]));
  const { year, month, day, hour, minute, timeZoneName } = parts;
  return `${year}-${month}-${day} ${hour}:${minute} ${timeZoneName}`;
}

/** Explains what a run is waiting for, or that it was merged or is being aborted. Empty for other runs. */
export function waitReason(
  run: RunRowPayload,
  approvals: readonly Pick<ApprovalPayload, "runId" | "toolName">[],
): string {
  const { state, waitsFor = [], wakeAt, keptFor } = run;
  const runs = waitsFor.map(shortRunId).join(", ");
  if (run.ownerGone === true)
    return `its process no longer exists; ${nextOwnerText(run.app)} will continue it`;
  switch (state) {
    case "queued":
      if (run.why?.kind === "worker") return "for a worker; none is running";
      if (run.waitsForApp !== undefined) return `for ${describeApp(run)}`;
      if (keptFor !== undefined) return `held for ${shortRunId(keptFor)}, which is sleeping`;
      return waitsFor.length === 0 ? `its turn in lane ${run.lane}` : `behind ${runs}`;
    case "waiting": {
      const asked = approvals.filter(({ runId }) => runId === run.runId);
      if (asked.length > 0) return `for approval of ${asked.map(({ toolName }) => toolName).join(", ")}`;
      return waitsFor.length === 0 ? `its turn in lane ${run.lane}` : `for ${runs}`;
    }
    case "sleeping": {
      const until = wakeAt === undefined ? "" : `until ${formatTime(wakeAt)} UTC at the latest`;
      return [until, waitsFor.length === 0 ? "" : `for ${pluralize(waitsFor.length, "run")}: ${runs}`]
        .filter((part) => part !== "")
        .join(", ");
    }
    case "merged":
      return run.mergedInto === undefined ? "" : `joined ${shortRunId(run.mergedInto)}`;
    default:
      return run.abortRequested === true ? "being aborted" : "";
  }
}

/** Describes which process will continue a run whose own process no longer exists. */
function nextOwnerText(app: string | null | undefined): string {
  return app === null || app === undefined || app === ""
    ? "the next `skein start`"
    : `the next process of the app ${app}`;
}

/** Describes the app that a queued run is waiting for, and the missing tools. */
export function describeApp({ waitsForApp = "", missingTools = [] }: RunRowPayload): string {
  const tools = missingTools.length === 0 ? "" : ` with ${missingTools.join(", ")}`;
  return `the app ${waitsForApp}${tools}`;
}

/** IDs start with the time, so only the end distinguishes runs. */
export function shortRunId(runId: string): string {
  return runId.length > 12 ? `…${runId.slice(-8)}` : runId;
}

/** Whether the run lost its process too many times, in which case `runs retry` can queue its input again. */
export function isLostRun({ error, retriedAs }: RunRowPayload): boolean {
  return error?.code === lostCode && retriedAs === undefined;
}

export function stateText(run: RunRowPayload): string {
  return isLostRun(run) ? "lost" : run.state;
}

/** Escapes control characters in text that arrives in pieces. */
export class SafeStream {
  /**
   * The end of a piece that depends on the next piece: half a surrogate pair, or a carriage return that might precede a
   * newline.
   */
  #held = "";

  push(piece: string): string {
    const text = this.#held + piece;
    const last = text.charCodeAt(text.length - 1);
    const isOpen = last === 0x0d || (last >= 0xd800 && last <= 0xdbff);
    this.#held = isOpen ? text.slice(-1) : "";
    return safeText(isOpen ? text.slice(0, -1) : text);
  }

  /** Returns the text that was held back. */
  end(): string {
    const text = this.#held;
    this.#held = "";
    return safeText(text);
  }
}

/** Escapes control characters except newlines. */
export function safeText(text: string): string {
  return escapeUnprintable(text.replaceAll("\r\n", "\n"));
}
