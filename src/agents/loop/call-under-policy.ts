import type { ToolCallBlock } from "../../core/messages.ts";
import type { Tool, Turn } from "../contract.ts";
import { unlessAborted } from "./waits.ts";

/** Who decides about a call of a tool that the rules of its session offer. */
export interface CallPolicy extends Pick<Turn, "signal" | "approve"> {
  readonly hooks: Pick<Turn["hooks"], "beforeToolCall">;
}

/** A call that was not made. */
export interface CallRefusal {
  readonly code: "forbidden" | "invalid_arguments";
  readonly error: string;
}

export type PolicyAnswer<Output> = {
  /** With the arguments that hooks left. */
  readonly call: ToolCallBlock;
} & ({ readonly output: Output } | { readonly refusal: CallRefusal });

/**
 * The one way to a tool, in a run and outside of one: hooks, then the tool's own check of its arguments, then a person where
 * one has to be asked.
 */
export async function callUnderPolicy<Output>(
  policy: CallPolicy,
  tool: Tool,
  call: ToolCallBlock,
  execute: (args: unknown, call: ToolCallBlock) => Promise<Output>,
): Promise<PolicyAnswer<Output>> {
  const hooked = await policy.hooks.beforeToolCall(call);
  if (hooked.block !== null) return refuse(call, "forbidden", `This call was blocked: ${hooked.block}`);
  const made = { ...call, arguments: { ...hooked.arguments } };
  const checked = await tool.check(made.arguments);
  if ("problem" in checked) {
    return refuse(made, "invalid_arguments", `The arguments of ${tool.name} do not fit: ${checked.problem}`);
  }
  if (await tool.needsApproval(made.arguments)) {
    const { approved, note } = await unlessAborted(policy.approve(made), policy.signal);
    if (!approved) return refuse(made, "forbidden", `This call was not approved. ${note}`.trimEnd());
  }
  return { call: made, output: await execute(checked.args, made) };
}

function refuse(
  call: ToolCallBlock,
  code: CallRefusal["code"],
  error: string,
): { readonly call: ToolCallBlock; readonly refusal: CallRefusal } {
  return { call, refusal: { code, error } };
}
