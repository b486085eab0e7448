import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/shape.ts";
import type { Scripted } from "../twins/contract.ts";

/** Scripts come from tests in plain JavaScript too: a slip is told when it is made, not when it should be said. */
export function checkScripts(scripts: readonly unknown[]): asserts scripts is readonly Scripted[] {
  for (const script of scripts) {
    const expected = problemOf(script);
    if (expected === null) continue;
    throw new SkeinError("invalid_arguments", {
      problem: "A twin cannot say what was scripted",
      advice: `Expected ${expected}`,
    });
  }
}

const reply = '{ content: [{ type: "text", text }] }';
const faults = ["status", "cut", "stall", "garbage", "slow"];

/** What was expected instead; `null`: nothing is wrong. */
function problemOf(script: unknown): string | null {
  if (!isRecord(script)) return `a reply such as ${reply}, or a fault`;
  if (!("fault" in script)) return problemOfReply(script);
  if (!faults.includes(String(script.fault))) return `fault to be one of ${faults.join(", ")}`;
  if (script.fault === "status") {
    const { status } = script;
    const isStatus = Number.isInteger(status) && Number(status) >= 200 && Number(status) <= 599;
    return isStatus ? null : "a fault of the kind status with a status from 200 to 599";
  }
  if (script.fault === "slow") {
    const isCount = Number.isInteger(script.bytes) && Number(script.bytes) > 0;
    return isCount ? problemOfFaulty(script) : "a fault of the kind slow with bytes, a number of them";
  }
  const { afterEvents } = script;
  if (!Number.isInteger(afterEvents) || Number(afterEvents) < 0)
    return `a fault of the kind ${String(script.fault)} with afterEvents, a number of events`;
  return problemOfFaulty(script);
}

function problemOfFaulty({ reply: of }: Readonly<Record<string, unknown>>): string | null {
  return isRecord(of) ? problemOfReply(of) : `the fault's reply, such as ${reply}`;
}

function problemOfReply({ content, stopReason, usage }: Readonly<Record<string, unknown>>): string | null {
  if (!Array.isArray(content)) return `a reply with content, such as ${reply}`;
  const reasons = ["stop", "length", "toolUse"];
  if (stopReason !== undefined && !reasons.includes(String(stopReason)))
    return `stopReason to be one of ${reasons.join(", ")}`;
  if (usage !== undefined && !(isRecord(usage) && Object.values(usage).every(Number.isFinite)))
    return "usage with numbers, such as { input: 200, output: 40 }";
  for (const [index, block] of content.entries()) {
    const expected = problemOfBlock(block);
    if (expected !== null) return `content[${index}] to be ${expected}`;
  }
  return null;
}

function problemOfBlock(block: unknown): string | null {
  const { type, text, thinking, name, arguments: given } = isRecord(block) ? block : {};
  switch (type) {
    case "text":
      return typeof text === "string" ? null : "a text block with its text";
    case "thinking":
      return typeof thinking === "string" ? null : "a thinking block with its thinking";
    case "toolCall":
      return typeof name === "string" && isRecord(given) ? null : "a toolCall with name and arguments";
    default:
      return "a block of the type text, thinking or toolCall";
  }
}
